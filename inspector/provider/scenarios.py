"""Scenarios as values: the model's intended answers, the budget, and the faults on the way.

A scenario file contains a `Story`: several answers in order, and their faults. A `Scenario` is a single answer under
one budget, as in the table of dialects; `play` cuts it at the budget. The module depends on no wire format, file or
server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from loop_core.errors import CallerError
from loop_core.values import ReasoningPart, ResponsePart, TextPart, Tool, ToolCall
from loop_core.wire.serving import Moment

FOLDER = Path(__file__).parent / "scenarios"
"""The folder of the scenario files that come with the program."""


class Kind(StrEnum):
    """The purpose of a request."""

    FIRST = "first"
    """A request for a new answer."""
    CONTINUATION = "continuation"
    """A request for the rest of an answer."""
    REPAIR = "repair"
    """A request for the calls of an answer again, whole."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One intended answer of the model, sent in the order of these fields."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()

    @property
    def parts(self) -> tuple[ResponsePart, ...]:
        """The answer as parts of a response."""
        thinking = (ReasoningPart(self.reasoning),) if self.reasoning else ()
        text_parts = (TextPart(self.text),) if self.text else ()
        return (*thinking, *text_parts, *self.calls)


@dataclass(frozen=True, slots=True)
class PlacedFault:
    """One fault and its conditions; it applies to the requests that match all of them."""

    name: str
    value: Any = True
    answer: int | None = None
    """The index of the answer, from 0; None: every answer."""
    segment: int | None = None
    """The index of the request among those for the same answer, from 0; None: every request."""
    when: Kind | None = None


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool, and its result for clients without an implementation."""

    tool: Tool
    result: str = "done"


@dataclass(frozen=True, slots=True, repr=False)
class FirstAnswer:
    """A first answer as raw bytes."""

    status: int
    content_type: str
    frames: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario that the scripted provider plays."""

    name: str
    story: str
    answers: tuple[Intent, ...]
    tools: tuple[DeclaredTool, ...] = ()
    faults: tuple[PlacedFault, ...] = ()
    prompt: str = "Tell me."
    max_tokens: int | None = None
    """The cap of requests that set none; None: such requests have no cap."""
    profile: str | None = None
    """The profile of the dialect, as `inspector providers --list` names it; None: the format's own server."""
    seed: int = 0
    ends: str = "completed"
    """The end state that the engine's loop reaches under `max_tokens`."""
    ends_in: dict[str, str] = field(default_factory=dict)
    """Wire format in which the loop reaches another end state -> that end state."""
    first: FirstAnswer | None = None
    """The answer to the first request, whatever the request is. A scenario file cannot set it."""


# -- The part of an answer that a budget allows ----------------------------------------------------------------------
# Tokens are ESTIMATED: four characters are one token, and a part of a token counts as one. No tokenizer is used, so
# that the same answer is cut at the same character for every provider.

CHARACTERS = 4
"""The number of characters of one estimated token."""


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """The part of an answer that a budget allows."""

    parts: tuple[ResponsePart, ...]
    whole: bool
    cut_call: ToolCall | None
    """The intended call whose arguments are cut; the last of `parts` is its beginning."""
    tokens: int
    thinking: int
    """The number of `tokens` that are thinking."""


def tokens(text: str) -> int:
    """The estimated token count of a text."""
    return -(-len(text) // CHARACTERS)


def cost(part: ResponsePart) -> int:
    """The estimated token count of one part; the name of a call counts."""
    return tokens(_text(part))


def cut(parts: Sequence[ResponsePart], budget: int | None, free_thinking: bool = False) -> CutAnswer:
    """The parts that fit into `budget` tokens (None: no bound). With `free_thinking`, thinking is not counted."""
    kept_parts: list[ResponsePart] = []
    spent = thinking = 0
    for part in parts:
        size = cost(part)
        free = free_thinking and isinstance(part, ReasoningPart)
        room = size if free or budget is None else budget - (spent - (thinking if free_thinking else 0))
        last = part if size <= room else _beginning(part, room * CHARACTERS)
        count = min(size, room)
        spent += count
        thinking += count if isinstance(part, ReasoningPart) else 0
        if last is not None:
            kept_parts.append(last)
        if last is not part:
            inside = part if isinstance(part, ToolCall) and last is not None else None
            return CutAnswer(tuple(kept_parts), False, inside, spent, thinking)
    return CutAnswer(tuple(kept_parts), True, None, spent, thinking)


def _text(part: ResponsePart) -> str:
    if isinstance(part, ToolCall):
        return part.name + (part.arguments or "")
    return part.text if isinstance(part, (TextPart, ReasoningPart)) else ""


def _beginning(part: ResponsePart, characters: int) -> ResponsePart | None:
    """The first characters of a part; None if no character of it fits."""
    if characters <= 0:
        return None
    if isinstance(part, (TextPart, ReasoningPart)):
        return part._replace(text=part.text[:characters])
    if isinstance(part, ToolCall) and characters >= len(part.name):
        return part._replace(arguments=(part.arguments or "")[: characters - len(part.name)])
    return None  # the name of a call is sent whole or not at all


COMPLETE = frozenset({Moment.ENDED, Moment.CALLED})
"""The ways of ending in which no part of the answer is missing."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One intended answer."""

    name: str
    title: str
    parts: tuple[ResponsePart, ...]
    budget: int
    """The output cap of the request, in estimated tokens."""
    event: Moment | None = None
    """The event that ends the answer, if the budget does not."""
    at: int | None = None
    """The number of tokens after which `event` ends the answer; None: at the end of the parts."""
    prompt: str = "Report what happened to the queue."


@dataclass(frozen=True, slots=True)
class PlayedScenario:
    """A scenario's answer, as far as the budget allows."""

    scenario: Scenario
    budget: int
    moment: Moment
    cut: CutAnswer

    @property
    def parts(self) -> tuple[ResponsePart, ...]:
        """The model's output when the answer ended."""
        return self.cut.parts

    @property
    def cut_call(self) -> ToolCall | None:
        """The intended call that was being written when the answer ended."""
        return self.cut.cut_call


def play(scenario: Scenario, budget: int | None = None, free_thinking: bool = False) -> PlayedScenario:
    """The scenario under a budget; None stands for its own budget."""
    limit = scenario.budget if budget is None else budget
    # a smaller budget ends it first
    happens = scenario.event is not None and scenario.at is not None and scenario.at <= limit
    # An event comes after this number of tokens of any kind; only a budget may leave out thinking.
    shortened = cut(scenario.parts, scenario.at if happens else limit, free_thinking and not happens)
    return PlayedScenario(scenario, limit, _moment(scenario, shortened, happens), shortened)


def _moment(scenario: Scenario, answer: CutAnswer, happens: bool) -> Moment:
    calls = sum(isinstance(part, ToolCall) for part in answer.parts)
    if scenario.event is not None and (happens or (answer.whole and scenario.at is None)):
        return scenario.event
    if answer.whole:
        return Moment.CALLED if calls else Moment.ENDED
    if answer.cut_call is not None:
        return Moment.CUT_BATCH if calls > 1 else Moment.CUT_CALL
    return Moment.CUT_AFTER if calls else Moment.CUT


WRITE = Tool("write_file", {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
    "additionalProperties": False,
}, "Writes a file.")
PAGE = Tool("page_oncall", {
    "type": "object", "properties": {"team": {"type": "string"}}, "required": ["team"], "additionalProperties": False,
}, "Pages a team.")
TOOLS = (WRITE, PAGE)

_REPORT = TextPart(
    "The queue was saturated for nineteen minutes. It began at 09:14, when the second region was drained, and ended at "
    "09:33, after the consumers had been doubled. No message was lost: those that waited came within the hour."
)
_SHORT = TextPart("The queue was saturated for nineteen minutes.")
_WRITE = ToolCall(None, "write_file", json.dumps({
    "path": "report.md",
    "content": "# Queue\n\nSaturated from 09:14 to 09:33. The second region was drained, the consumers were doubled, "
               "and no message was lost.",
}))
_PAGE = ToolCall(None, "page_oncall", json.dumps({"team": "platform"}))
_INVALID = ToolCall(None, "write_file", "{path: report.md, content: Saturated from 09:14 to 09:33}")
_WORDS = TextPart("I write the report to a file.")
_THOUGHT = ReasoningPart(
    "The user wants to know what happened to the queue. The metrics of the second region come first, then those of the "
    "consumers; the two must be laid side by side before anything can be said about a cause."
)

SCENARIOS: Mapping[str, Scenario] = {each.name: each for each in (
    Scenario("call-cut", "a call that the budget cuts in the middle of a string", (_WORDS, _WRITE), 32),
    Scenario("text-cut", "a text that the budget cuts", (_REPORT,), 32),
    Scenario("two-calls", "a complete call and a second one that the budget cuts", (_WORDS, _PAGE, _WRITE), 32),
    Scenario("call-then-text", "a complete call, and the budget ends in the text after it",
             (_PAGE, TextPart("While the team is being paged, I look at the metrics of the second region.")), 16),
    Scenario("thinking", "thinking takes the whole budget", (_THOUGHT, _SHORT), 32),
    Scenario("text-done", "a text that ends within the budget", (_REPORT,), 256),
    Scenario("call-done", "a call that ends within the budget", (_WORDS, _WRITE), 256),
    Scenario("context-full", "the context is full before the budget is spent", (_REPORT,), 256, Moment.FULL, 32),
    Scenario("filtered", "a filter or a refusal ends the answer", (_REPORT,), 256, Moment.FILTERED, 8),
    Scenario("paused", "the provider pauses a long turn and can go on", (_REPORT,), 256, Moment.PAUSED, 32),
    Scenario("malformed-call", "the model writes a call that is not JSON", (_WORDS, _INVALID), 256, Moment.MALFORMED),
    Scenario("server-fails", "the server fails in the middle of the text", (_REPORT,), 256, Moment.FAILED, 32),
    Scenario("stream-breaks", "the connection is lost inside a call", (_WORDS, _WRITE), 256, Moment.BROKEN, 32),
)}
"""Name -> scenario. The first scenario is shown if no name is given."""


def scenario_names() -> tuple[str, ...]:
    """The names of the built-in scenario files."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def scenario_named(name: str) -> Scenario:
    """The scenario with this name. Raises `CallerError` if there is none."""
    if name not in SCENARIOS:
        raise CallerError(f"unknown scenario {name!r}; expected one of {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
