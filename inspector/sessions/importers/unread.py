"""Transcripts and traces that are known and not read yet, so that each is named as what it is.

A table: a name and a test of the file's first values. Adding the reader of one later removes its row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from inspector.sessions.importers import FileHead, first_look
from inspector.sessions.recording import FileReading, Options, UnreadableError


class KnownFormat(NamedTuple):
    """One format; `test` is asked with each of the first JSON values (an object, or the first of a list)."""

    name: str
    test: Callable[[dict[str, Any]], bool]


def _has(*keys: str) -> Callable[[dict[str, Any]], bool]:
    return lambda value: all(key in value for key in keys)


def _typed(*types: str, keys: tuple[str, ...] = ()) -> Callable[[dict[str, Any]], bool]:
    return lambda value: value.get("type") in types and all(key in value for key in keys)


def _message(value: dict[str, Any]) -> dict[str, Any]:
    message = value.get("message")
    return message if isinstance(message, dict) else {}


def _is_qwen(value: dict[str, Any]) -> bool:
    return "uuid" in value and "sessionId" in value and "parts" in _message(value)


JSON: tuple[KnownFormat, ...] = (
    KnownFormat("LangSmith runs", _has("run_type", "inputs")),
    KnownFormat("OpenTelemetry logs (OTLP)", _has("resourceLogs")),
)


def sniff(head: bytes, path: str) -> int:
    """Whether a row of the table knows the file."""
    return 95 if name_of(head, path) is not None else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Never reads.

    Raises:
        UnreadableError: always; the line names the format.
    """
    _refuse(name_of(data[: 1 << 16], path) or "known format")


def _refuse(name: str) -> NoReturn:
    raise UnreadableError(f"{name}: not read yet")


def name_of(head: bytes, path: str) -> str | None:
    """The name of the transcript format that a file is in; None where the table does not know it."""
    seen = first_look(head)
    return _by_value(seen) or _by_bytes(head)


def _by_value(seen: FileHead) -> str | None:
    values = [*(seen.first[:4] if isinstance(seen.first, list) else [seen.first]), *seen.lines]
    for row in JSON:
        if any(isinstance(value, dict) and row.test(value) for value in values):
            return row.name
    return None


def _by_bytes(head: bytes) -> str | None:
    if head.startswith(b"PK\x03\x04"):
        return "ZIP archive"
    return None
