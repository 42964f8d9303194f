"""The checks that a server makes of a request, as rows: the members of its body, and rules over several members.

A path such as `messages[].role` names a member. `[]` selects all elements of a list, `[name=value]` those elements (or
the single object) whose member has this value, `[!name]` those without this member. `inspector.provider.checks` applies
the rows, for the scripted provider. The last section finds calls and results that do not match, in formats whose
results are in the message after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from loop_core.errors import CallerError

Body = Mapping[str, Any]
Where = tuple[str | int, ...]
Spellings = Callable[[str], Sequence[str]]
"""A name -> all the names under which a member may stand."""


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
    """Names of JSON types, with `|` between them; empty: any."""
    required: bool = False
    among: tuple[str, ...] = ()
    """All the values that a text may have."""
    least: float | None = None
    """The allowed range of a number, or of the number of elements of a list."""
    most: float | None = None
    only: tuple[Any, ...] | None = None
    """The values beside null that ask for nothing; any other is refused."""
    hint: str = ""
    """The advice that the error message adds."""
    code: str = ""
    """The server's code, where it is not that of the flaw."""


class Rule(NamedTuple):
    """A check that concerns more than one member."""

    name: str
    find: Callable[[Body], RequestError | None]
    source: str
    """Where it is known from."""


def plain(name: str) -> Sequence[str]:
    """The spellings of a name in a format where each name has only one."""
    return (name,)


class Telling(StrEnum):
    """How a server names the wrong member in its error message."""

    DOTS = "dots"
    """`messages.0.role`, in the message."""
    BRACKETS = "brackets"
    """`messages[0].role`, in the message and beside it."""
    CODES = "codes"
    """The same, with a code for what is wrong (OpenAI)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Demands:
    """All checks of a server on a request."""

    members: tuple[Member, ...] = ()
    """The first one that is not met is reported."""
    rules: tuple[Rule, ...] = ()
    """The same, once every field is as it has to be."""
    telling: Telling = Telling.DOTS
    spellings: Spellings = plain
    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Path of an object -> the only names that are permitted in it."""


class JSONShape(NamedTuple):
    """The JSON that a request demands as the text of the answer."""

    at: str
    """The member that asks for it."""
    schema: Any = None
    """None: any."""
    dialect: str = "json_schema"


def items(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a list, with their indices."""
    for number, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield number, item


def inside(value: Any, *names: str, spellings: Spellings = plain) -> Any:
    """The member at the end of this path; None if one is missing."""
    for name in names:
        known = value if isinstance(value, Mapping) else {}
        value = next((each for spelled in spellings(name) if (each := known.get(spelled)) is not None), None)
    return value


def first_ids(ids: Iterable[str]) -> str:
    """The first few call ids in a message."""
    names = [name[:80] for name in ids]
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def dots(where: Where) -> str:
    """A path in a request with its keys joined by dots: `messages.0.role`."""
    return ".".join(map(str, where))


# -- Calls and results that do not belong together, in histories whose results travel in the message after the call --

Ident = Callable[[Mapping[str, Any]], str | None]
"""A block -> the id of the call that it is, or answers; None if it is neither."""


class RoleTurn(NamedTuple):
    """One message, or several of one role that the server reads as one."""

    role: str
    where: Where
    blocks: Sequence[tuple[Where, Mapping[str, Any]]]


class UnpairedIds(NamedTuple):
    """Calls without results, or a result without its call."""

    where: Where
    ids: Sequence[str]
    result: bool


def turns(messages: Any, *, joined: bool) -> list[RoleTurn]:
    """The messages of the user and the model; with `joined`, consecutive ones of one role are one turn."""
    made: list[RoleTurn] = []
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
            continue  # a late system message stands between nobody
        where: Where = ("messages", number)
        role, blocks = message["role"], list(_blocks(message.get("content"), where))
        if joined and made and made[-1].role == role:  # Anthropic reads them as one (API reference, messages)
            made[-1] = made[-1]._replace(blocks=[*made[-1].blocks, *blocks])
        else:
            made.append(RoleTurn(role, where, blocks))
    return made


def _blocks(content: Any, where: Where) -> Iterable[tuple[Where, Mapping[str, Any]]]:
    for number, block in enumerate(content if isinstance(content, list) else [{"type": "text", "text": content}]):
        if isinstance(block, Mapping):
            yield (*where, "content", number), block


def first_unpaired(history: Sequence[RoleTurn], call: Ident, result: Ident) -> UnpairedIds | None:
    """The first turn whose calls the next turn does not answer, or that answers a call that was not made.

    Calls at the end of the history are unanswered too.
    """
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
