"""One output item while it arrives, and whether all that the provider sent of it agrees.

A stream says most things more than once: in pieces, in an event that repeats the whole field, in the item that ended,
and in the final response. The last whole text counts as the item's; a call of which two texts differ stays open.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loop_core.values import At
from loop_core.wire.body import compact, read_object, string
from loop_core.wire.copies import Copy, is_same_json
from loop_core.wire.json_values import slice_of
from loop_core.wire.openai_responses.table import CLIENT_ITEMS

_WORDS = ("text", "refusal")
"""The fields of a message that its reader sees."""


class GrowingItem:
    """One output item: its latest JSON, the pieces of its deltas, and whether it ended."""

    __slots__ = ("announced", "at", "begins", "done", "finals", "frame", "gap", "path", "pieces", "value", "wholes")

    def __init__(self, value: Mapping[str, Any], frame: bytes, path: tuple[str | int, ...], at: At, done: bool) -> None:
        self.value = value
        self.frame = frame
        """The JSON text that holds `value`, at `path`."""
        self.path = path
        self.at = at
        self.done = done
        """Whether the provider ended the item or listed it in its final response."""
        self.announced = value
        """The JSON with which the item began."""
        self.wholes: list[tuple[Mapping[str, Any], At]] = [(value, at)] if done else []
        """Each JSON that the provider sent as the whole item, with its place; the last one is `value`."""
        self.gap = False
        """Whether the numbers of the events show that one of them is missing, or came twice, inside the item."""
        self.pieces: dict[tuple[str, int], list[str]] = {}
        self.finals: dict[tuple[str, int], str] = {}
        self.begins: dict[tuple[str, bool], int] = {}
        """Field, and whether it is repeated whole -> the byte at which its first piece or its first repetition
        begins."""

    def replace(self, value: Mapping[str, Any], frame: bytes, path: tuple[str | int, ...], at: At) -> None:
        """Replaces what came of the item by the whole item."""
        self.value, self.frame, self.path, self.at, self.done = value, frame, path, at, True
        self.wholes.append((value, at))

    def streamed_values(self, *fields: str) -> list[tuple[int, str, str]]:
        """The streamed values of these fields, as (index, field, text) in order; a whole value that repeats the pieces
        replaces them."""
        keys = sorted({key for key in (*self.pieces, *self.finals) if key[0] in fields}, key=lambda key: key[1])
        return [(key[1], key[0], self.finals.get(key, "".join(self.pieces.get(key, ())))) for key in keys]

    def verbatim(self, *more: str | int) -> str:
        """The JSON characters of the item, or of a value inside it, as received."""
        text = self.frame.decode("utf-8", "replace").lstrip("\ufeff")
        found = slice_of(text, *self.path, *more)
        if found is not None:
            return found
        value: Any = self.value
        for key in more:
            value = value[key]
        return json.dumps(value, ensure_ascii=False)


def payload(item: GrowingItem, field: str) -> tuple[str | None, Copy | None]:
    """The payload of a call, and a second text of it if its pieces, their repetition and the whole items disagree.

    Such a call stays open, because nothing shows which text the model meant.
    """
    pieces = "".join(item.pieces.get((field, 0), ()))
    final, word = item.finals.get((field, 0)), string(item.value.get(field))
    copies = [Copy(pieces, item.begins.get((field, False))), Copy(final or "", item.begins.get((field, True))),
              *(Copy(string(value.get(field)) or "", at.start) for value, at in item.wholes)]
    text = (word or final or pieces or word) if item.done else final if final is not None else pieces or word
    if field == "arguments" and read_object(string(item.announced.get(field)) or ""):  # `{}` may stand for nothing yet
        copies.append(Copy(str(item.announced[field]), None))
    other = next((copy for copy in copies if copy.text and text and not _is_same(text, copy.text, field)), None)
    if other is None and pieces and (final == "" or (item.done and not word)):
        other = Copy("", None)  # an end that repeats nothing of what was streamed
    return text, other


def is_confirmed(item: GrowingItem, text: str | None) -> bool:
    """Whether the pieces of a call make the text of its whole item: then none of them is missing or came twice, and
    what the numbers of the events lack was something else, such as a `keepalive` that a gateway left out."""
    pieces = "".join(["".join(each) for (field, _), each in item.pieces.items() if field in ("arguments", "input")])
    return bool(pieces) and pieces == text and any(text in (value.get("arguments"), value.get("input"))
                                                   for value, _ in item.wholes)


def _is_same(one: str, other: str, field: str) -> bool:
    return is_same_json(one, other) if field == "arguments" else one == other


def other_name(item: GrowingItem) -> str | None:
    """Another name that the provider gave the tool of a call; None if all agree."""
    name = string(item.value.get("name")) or ""
    names = [string(value.get("name")) for value in (item.announced, *(value for value, _ in item.wholes))]
    return next((other for other in names if other and other != name), None)


def other_item(item: GrowingItem) -> Copy | None:
    """Another JSON of a whole item, if a member that both have has another value there. Its status may
    change, and its own id where a result names the call by another one."""
    for value, at in item.wholes[:-1]:
        common = (value.keys() & item.value.keys()) - ({"status", "id"} if call_id(value) else {"status"})
        if any(compact(value[name], sort=True) != compact(item.value[name], sort=True) for name in common):
            return Copy(compact(value), at.start)
    return None


def words(value: Mapping[str, Any]) -> str:
    """All that the reader of a message sees, from the JSON of the whole message."""
    content = value.get("content")
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    return "".join([text for part in parts if isinstance(part, dict) for text in _texts(part)])


def _texts(part: Mapping[str, Any]) -> Iterator[str]:
    for field in _WORDS:
        if type(part.get(field)) is str:
            yield part[field]


def streamed_words(item: GrowingItem) -> str:
    """All that the reader of a message sees, from the pieces."""
    return "".join([text for _, _, text in item.streamed_values(*_WORDS)])


def other_words(item: GrowingItem, text: str) -> Copy | None:
    """Another text of a message than `text`, which counts; None if all that was sent of it agrees.

    It keeps no answer from being complete: the words of the whole message are the provider's, as far as anything shows.
    """
    pieces = "".join(["".join(item.pieces[key]) for key in sorted(item.pieces, key=lambda key: key[1])
                      if key[0] in _WORDS])
    begins = [item.begins[key] for key in item.begins if key[0] in _WORDS]
    copies = [Copy(pieces, min(begins, default=None)), Copy(streamed_words(item), max(begins, default=None)),
              *(Copy(words(value), at.start) for value, at in item.wholes)]
    if item.done and text.strip() and not words(item.value):
        return Copy("", item.at.start)
    # A server may trim what it repeats, such as a text before a call (mlx-node PR#45).
    return next((copy for copy in copies if copy.text.strip() and copy.text.strip() != text.strip()), None)


# -- the items of the final response, beside those that were streamed ------------------------------------------------


def call_id(value: Mapping[str, Any]) -> str | None:
    """The id that a result has to name; None if it is missing or empty (xAI sends empty ids)."""
    return string(value.get("call_id")) or None


def _ids(value: Mapping[str, Any]) -> list[Any]:
    return [key for key in (value.get("id"), call_id(value)) if key]


def streamed_items(streamed: Sequence[GrowingItem], values: Sequence[Mapping[str, Any]]) -> list[GrowingItem | None]:
    """The streamed item of each item of the final response; None if it was not streamed.

    Items are known by id, not by place: the final list may lack items, and then the others move up. Where the end
    renames its messages, which have no other id, they are taken in order.
    """
    by_id: dict[Any, GrowingItem] = {}
    for item in streamed:
        for key in _ids(item.value):
            by_id.setdefault(key, item)
    taken: set[int] = set()
    found: list[GrowingItem | None] = []
    for value in values:
        before = next((by_id[key] for key in _ids(value) if key in by_id), None)
        found.append(before if id(before) not in taken else None)
        taken.add(id(before))
    others = iter([item for item in streamed if id(item) not in taken and _is_message(item.value)])
    return [next(others, None) if before is None and _is_message(value) else before
            for before, value in zip(found, values, strict=True)]


def with_omitted(
    streamed: Sequence[GrowingItem], merged: Sequence[GrowingItem]
) -> tuple[list[GrowingItem], list[GrowingItem]]:
    """The items of the final response together with the streamed calls and texts that it leaves out, each where it was
    streamed; and these alone.

    Calls are known by an id that must be answered, so one that the end forgets is not simply gone. A text is left out
    if no message of the end holds it.
    """
    named = {key for item in merged for key in _ids(item.value)}
    said, there = "".join([words(item.value) for item in merged]), {id(item) for item in merged}
    omitted: dict[int | None, list[GrowingItem]] = {}
    last: int | None = None
    for item in streamed:
        if id(item) in there:
            last = id(item)
            continue
        text = streamed_words(item) or words(item.value)
        is_lost_call = bool(call_id(item.value)) and named.isdisjoint(_ids(item.value))
        if is_lost_call or (_is_message(item.value) and text.strip() and text not in said):
            omitted.setdefault(last, []).append(item)
    whole = [*omitted.get(None, ()), *(each for item in merged for each in (item, *omitted.get(id(item), ())))]
    return whole, [item for items in omitted.values() for item in items]


def is_call(value: Mapping[str, Any]) -> bool:
    """Whether an item is a call that the client may have to run."""
    return value.get("type") in ("function_call", "custom_tool_call", *CLIENT_ITEMS)


def _is_message(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "message"
