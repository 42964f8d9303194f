"""Describes, as rows, how a server checks a request: the members of its body, and conditions over several members.

A path such as `messages[].role` names a member. `[]` selects all elements of a list, `[name=value]` those elements (or
the single object) whose member has this value, `[!name]` those without this member. The values on the way have to be
lists or objects, unless a row of their own says otherwise. `inspector.provider.checks` applies the rows for the
scripted provider. The last section finds calls and results that do not match, in formats whose results are in the
message after the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

from loop_core.errors import CallerError
from loop_core.json_parser import JsonPath

Body = Mapping[str, Any]
Spellings = Callable[[str], Sequence[str]]
"""A function from a name to all names under which the member may occur."""


class RequestError(CallerError):
    """A refused request: the message, and further fields for formats that have a place for them."""

    def __init__(
        self, message: str, status: int = 400, *, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a request body, and the values that it may have."""

    path: str
    types: str = ""
    """The names of the permitted JSON types, with `|` between them; empty for any type."""
    required: bool = False
    among: tuple[str, ...] = ()
    """All values that a text may have; empty for any."""
    least: float | None = None
    """The lower limit of a number, or of the number of elements of a list; `most` is the upper limit."""
    most: float | None = None
    only: tuple[Any, ...] | None = None
    """Values that, like null, request nothing. Others are refused, because a scripted answer cannot provide what they
    request."""
    hint: str = ""
    """A piece of advice that the error message adds."""
    code: str = ""
    """The error code that the server sends; empty if it is the usual one for this kind of flaw."""


class Condition(NamedTuple):
    """A check that concerns more than one member."""

    name: str
    find: Callable[[Body], RequestError | None]
    source: str
    """The source of the condition, such as a document or an SDK."""


def plain(name: str) -> Sequence[str]:
    """The spellings of a name in a format where each name has only one."""
    return (name,)


class PathStyle(StrEnum):
    """How a server names the wrong member in its error message."""

    DOTS = "dots"
    """The message contains the path as `messages.0.role`."""
    BRACKETS = "brackets"
    """The message contains the path as `messages[0].role`, and a member of the error repeats it."""
    CODES = "codes"
    """The path is given as under BRACKETS, and a code says what is wrong (OpenAI)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Demands:
    """All checks of a server on a request."""

    members: tuple[Member, ...] = ()
    """The checks of single members. The error names the first member that fails its check."""
    conditions: tuple[Condition, ...] = ()
    """The checks over several members, made only if every single member is valid. The error comes from the first
    that fails."""
    style: PathStyle = PathStyle.DOTS
    spellings: Spellings = plain
    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Path of an object -> the only names that its members may have."""

    @property
    def checks(self) -> Iterator[Member]:
        """The checks of single members, each after those of the objects and lists that hold the member."""
        known = {member.path for member in self.members}
        for member in self.members:
            for holder in _holders(member.path):
                if holder.path not in known:
                    known.add(holder.path)
                    yield holder
            yield member


STEP = re.compile(r"\[[^\]]*\]|[^.\[]+")
"""A pattern of one step of a path: a name, or a choice of elements in brackets."""


def _holders(path: str) -> Iterator[Member]:
    """Yields the objects and lists on a path, outermost first. A list whose elements are selected by a member is not
    checked, because it may also be a single object."""
    steps = list(STEP.finditer(path))
    for step, following in pairwise(steps):
        if following[0] == "[]":
            yield Member(path[: step.end()], "array")
        elif not following[0].startswith("[") and (step[0] == "[]" or not step[0].startswith("[")):
            yield Member(path[: step.end()], "object")


class JSONShape(NamedTuple):
    """The JSON that a request requires as the text of the answer."""

    at: str
    """The path of the member that requests JSON."""
    schema: Any = None
    """The JSON Schema of the answer; None if any JSON is accepted."""
    dialect: str = "json_schema"


def items(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a list, with their indices."""
    for number, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield number, item


def inside(value: Any, *names: str, spellings: Spellings = plain) -> Any:
    """The value at the end of this path of names; None if a member is missing."""
    for name in names:
        members = value if isinstance(value, Mapping) else {}
        value = next((each for spelled in spellings(name) if (each := members.get(spelled)) is not None), None)
    return value


def first_ids(ids: Iterable[str]) -> str:
    """The first few call ids in one text, for a message."""
    names = [name[:80] for name in ids]
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def dots(where: JsonPath) -> str:
    """A path in a request with its keys joined by dots: `messages.0.role`."""
    return ".".join(map(str, where))


# -- Calls and results that do not belong together, in histories whose results travel in the message after the call --

Ident = Callable[[Mapping[str, Any]], str | None]
"""A function from a block to the id of the call that the block makes or answers; None for any other block."""


class RoleTurn(NamedTuple):
    """One message, or several of one role that the server reads as one."""

    role: str
    where: JsonPath
    blocks: Sequence[tuple[JsonPath, Mapping[str, Any]]]


class UnpairedIds(NamedTuple):
    """Calls without results, or a result without its call."""

    where: JsonPath
    ids: Sequence[str]
    result: bool


def turns(messages: Any, *, joined: bool) -> list[RoleTurn]:
    """The messages of the user and the model; with `joined`, consecutive ones of one role are one turn."""
    role_turns: list[RoleTurn] = []
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
            continue  # a late system message is part of no turn
        where: JsonPath = ("messages", number)
        role, blocks = message["role"], list(_blocks(message.get("content"), where))
        # Anthropic reads them as one (API reference, messages).
        if joined and role_turns and role_turns[-1].role == role:
            role_turns[-1] = role_turns[-1]._replace(blocks=[*role_turns[-1].blocks, *blocks])
        else:
            role_turns.append(RoleTurn(role, where, blocks))
    return role_turns


def _blocks(content: Any, where: JsonPath) -> Iterable[tuple[JsonPath, Mapping[str, Any]]]:
    for number, block in enumerate(content if isinstance(content, list) else [{"type": "text", "text": content}]):
        if isinstance(block, Mapping):
            yield (*where, "content", number), block


def first_unpaired(history: Sequence[RoleTurn], call: Ident, result: Ident) -> UnpairedIds | None:
    """The first turn whose calls the next turn does not answer, or that answers a call that was not made. Calls at the
    end of the history are unanswered too."""
    for number, turn in enumerate(history):
        before = history[number - 1] if number else None
        called = {name for _, block in before.blocks if (name := call(block))} if before is not None else set()
        stray = next(((where, name) for where, block in turn.blocks
                      if (name := result(block)) is not None and name not in called), None)
        if stray is not None:
            return UnpairedIds(stray[0], [stray[1]], True)
        after = history[number + 1].blocks if number + 1 < len(history) else ()
        answers = set[str]()
        for _, block in after:
            name = result(block)
            if name is None:
                break  # results come first (Anthropic docs, tool use)
            answers.add(name)
        left = [name for _, block in turn.blocks if (name := call(block)) and name not in answers]
        if left:
            return UnpairedIds(turn.where, left, False)
    return None
