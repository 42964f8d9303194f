"""A scenario as a value: what the model means to answer, turn by turn, and which faults befall it on the way.

One answer is what `inspector.provider.scenarios` calls a scenario; a story is a row of them. Nothing here knows a wire
format, a file or a server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from loop_core.values import ReasoningPart, ResponsePart, TextPart, Tool, ToolCall


class Kind(StrEnum):
    """What a request asks for."""

    FIRST = "first"
    """An answer of which nothing was said yet."""
    CONTINUATION = "continuation"
    """The rest of an answer."""
    REPAIR = "repair"
    """The calls of an answer, once more and whole."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model means to say at one place of the story, in this order."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()

    @property
    def parts(self) -> tuple[ResponsePart, ...]:
        """The answer as parts of a response."""
        thinking = (ReasoningPart(self.reasoning),) if self.reasoning else ()
        said = (TextPart(self.text),) if self.text else ()
        return (*thinking, *said, *self.calls)


@dataclass(frozen=True, slots=True)
class Placed:
    """One fault, and the requests that it applies to: all that fit whatever is given."""

    name: str
    value: Any = True
    answer: int | None = None
    """Counted from 0."""
    segment: int | None = None
    """Which request for that answer, counted from 0."""
    when: Kind | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool, and what it answers where a client has nothing better to run."""

    tool: Tool
    result: str = "done"


@dataclass(frozen=True, slots=True)
class Story:
    """One scenario."""

    name: str
    story: str
    answers: tuple[Answer, ...]
    tools: tuple[Declared, ...] = ()
    faults: tuple[Placed, ...] = ()
    prompt: str = "Tell me."
    max_tokens: int | None = None
    """The cap of requests that set none; None: there is none."""
    profile: str | None = None
    """A dialect, as `inspector providers --list` names them."""
    seed: int = 0
    ends: str = "completed"
    """The end state that our own loop reaches under `max_tokens`."""
    ends_in: dict[str, str] = field(default_factory=dict)
    """Wire format -> another end state there."""
