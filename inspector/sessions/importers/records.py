"""Records of transcripts that are no lines, each as the JSON that a reader gets: rows of tables, elements of lists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from inspector.sessions.importers import partial
from inspector.sessions.recording import UnreadableError
from loop_core.wire.json_values import byte_span

Piece = tuple[int, bytes, bool]
"""The number of a record, its JSON, and whether a file that is cut may end in it."""


def numbered(pieces: Iterable[bytes], cut: bool = False) -> Iterator[Piece]:
    """Records with their numbers. `cut`: one that is no JSON can only be the last, where the file is cut."""
    return ((number, piece, cut) for number, piece in enumerate(pieces, start=1))


def in_order(row: dict[str, Any]) -> tuple[float, float, str]:
    """Rows stand in the order of their numbers, else of their times, else of their ids; columns differ by version."""
    numbers = (row.get(name) for name in ("seq", "time_created"))
    first, second = (float(at) if isinstance(at, (int, float)) else 0.0 for at in numbers)
    return first, second, str(row.get("id"))


def in_tree(rows: list[dict[str, Any]], parent: str) -> Iterator[dict[str, Any]]:
    """Sessions in their order, each followed by those that name it as their parent."""
    known = {row.get("id") for row in rows}
    below: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        above = row.get(parent)
        below.setdefault(above if above in known and above != row.get("id") else None, []).append(row)
    done: set[Any] = set()
    stack = list(reversed(below.get(None, [])))
    while stack or len(done) < len(known):
        row = stack.pop() if stack else next(row for row in rows if row.get("id") not in done)
        if row.get("id") in done:
            continue
        done.add(row.get("id"))
        yield row
        stack += reversed(below.get(row.get("id"), []))


def with_ids(data: Any, **ids: Any) -> bytes:
    """A record's JSON, verbatim behind the ids that stand in columns of their own; what is no object stays as it is."""
    text = data if isinstance(data, bytes) else str(data).encode("utf-8", "replace")
    inner = text.strip()
    if not inner.startswith(b"{") or not inner.endswith(b"}"):
        return inner or b"null"
    rest = inner[1:].lstrip()
    return encoded(ids)[:-1] + (b"}" if rest == b"}" else b"," + rest)


def encoded(value: Any) -> bytes:
    """The JSON of a value, as short as it can be."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


_VALUE = re.compile(r"[\s,]*")


def elements(data: bytes) -> Iterator[bytes]:
    """The elements of a list, verbatim, each read once; where it is cut, what there is of the last."""
    text = data.decode("utf-8", "replace")
    decoder, at = json.JSONDecoder(), text.find("[") + 1
    while at:
        found = _VALUE.match(text, at)
        at = found.end() if found is not None else at
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            rest = text[at:].strip()
            if rest and not rest.startswith("]"):
                yield rest.encode("utf-8", "replace")
            return
        yield text[at:end].encode("utf-8", "replace")
        at = end


def list_of(data: bytes, name: str) -> bytes:
    """The list that a member of an object is, as far as the file goes."""
    try:
        span = byte_span(data, 0, name)
    except ValueError:
        span = None
    if span is not None:
        return data[span[0] : span[1]]
    found = re.search(rb'"%s"\s*:\s*\[' % name.encode(), data)
    return b"" if found is None else data[found.end() - 1 :]


def whole_object(data: bytes) -> dict[str, Any]:
    """The object that a file is, perhaps cut.

    Raises:
        UnreadableError: it is none.
    """
    value = partial(data.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(value, dict):
        raise UnreadableError("no JSON object: expected one that holds a session")
    return value
