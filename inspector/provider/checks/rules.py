"""What a rule about a whole request is, and what rules of several formats share.

Further down: calls and results that do not belong together, in histories whose results travel in the message after
the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inspector.provider.checks.fields import Where
from loop_core.errors import CallerError

Body = Mapping[str, Any]


class RequestError(CallerError):
    """A request that is refused: the words, and what a format that has a place for it says beside them."""

    def __init__(
        self, message: str, status: int = 400, *, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


class Rule(NamedTuple):
    """A rule that no single member breaks."""

    name: str
    find: Callable[[Body], RequestError | None]
    source: str
    """Where it is known from."""


def items(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a list, with their numbers."""
    for number, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield number, item


def inside(value: Any, *names: str) -> Any:
    """The member at the end of these names; None where one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def listed(ids: Iterable[str]) -> str:
    """Ids in a message, the first few."""
    names = [name[:80] for name in ids]
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


# -- Calls and results that do not belong together, in histories whose results travel in the message after the call --

Ident = Callable[[Mapping[str, Any]], str | None]
"""A block -> the id of the call that it is, or answers; None where it is neither."""


class Turn(NamedTuple):
    """One message, or several of one role that the server reads as one."""

    role: str
    where: Where
    blocks: Sequence[tuple[Where, Mapping[str, Any]]]


class Unpaired(NamedTuple):
    """Calls without results, or a result without its call."""

    where: Where
    ids: Sequence[str]
    result: bool


def turns(messages: Any, *, joined: bool) -> list[Turn]:
    """The messages of the user and of the model, those of one role that follow each other `joined` or not."""
    made: list[Turn] = []
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
            continue  # a late system message stands between nobody
        where: Where = ("messages", number)
        role, blocks = message["role"], list(_blocks(message.get("content"), where))
        if joined and made and made[-1].role == role:
            made[-1] = made[-1]._replace(blocks=[*made[-1].blocks, *blocks])
        else:
            made.append(Turn(role, where, blocks))
    return made


def _blocks(content: Any, where: Where) -> Iterable[tuple[Where, Mapping[str, Any]]]:
    for number, block in enumerate(content if isinstance(content, list) else [{"type": "text", "text": content}]):
        if isinstance(block, Mapping):
            yield (*where, "content", number), block


def unpaired(history: Sequence[Turn], call: Ident, result: Ident) -> Unpaired | None:
    """The first turn whose calls the next one does not begin with the results of, or that answers what was not called.

    Calls that end the history are unanswered too.
    """
    for number, turn in enumerate(history):
        before = history[number - 1] if number else None
        called = {name for _, block in before.blocks if (name := call(block))} if before is not None else set()
        stray = next(((where, name) for where, block in turn.blocks
                      if (name := result(block)) is not None and name not in called), None)
        if stray is not None:
            return Unpaired(stray[0], [stray[1]], True)
        after = history[number + 1].blocks if number + 1 < len(history) else ()
        answers = set[str]()
        for _, block in after:
            name = result(block)
            if name is None:
                break  # results come first
            answers.add(name)
        left = [name for _, block in turn.blocks if (name := call(block)) and name not in answers]
        if left:
            return Unpaired(turn.where, left, False)
    return None
