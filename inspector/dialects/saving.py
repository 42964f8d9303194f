"""A row as a native session file, so that it opens like any recording."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inspector.dialects import asking
from inspector.dialects.run import MS, Row, Told
from loop_core.errors import CallerError

PROVENANCE = "made from an intended answer and encoded in the provider's wire format; no provider was asked"


def file_name(row: Row) -> str:
    """The name of the row's file, unique among the rows of one scenario."""
    return f"{row.played.scenario.name}.{row.name.replace('/', '.')}.session.jsonl"


def save_all(told: Sequence[Told], folder: str | Path) -> list[Path]:
    """Writes a session for each row that says something, into a folder that is made where it is missing.

    Raises:
        CallerError: the folder cannot be written to.
    """
    from inspector.sessions.native import write_session

    rows = [row for row in told if isinstance(row, Row)]
    paths = [Path(folder) / file_name(row) for row in rows]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, row in zip(paths, rows, strict=True):
            write_session(path, records(row))
    except OSError as why:
        raise CallerError(f"{folder}: cannot be written: {why.strerror or why}") from None
    return paths


def records(row: Row) -> Iterator[dict[str, Any]]:
    """The lines of the session file."""
    exchange, played, dialect = row.exchange, row.played, row.dialect
    yield {
        "loop_inspector_session": 1,
        "title": f"{dialect.name}: {played.scenario.title}",
        "story": dialect.title or "speaks as its format says",
        "provenance": f"{PROVENANCE}; {dialect.source}",
        "end_state": f"{row.judged.stop.normalized.value}: {row.decision}",
    }
    yield {
        "type": "request", "id": "r1", "api": dialect.api, "profile": dialect.profile, "method": "POST",
        "url": exchange.url, "headers": [list(pair) for pair in exchange.request_headers],
        "body": asking.body(dialect, played, exchange.response.streaming),
    }
    yield {"type": "response", "request": "r1", "status": exchange.response.http_status, "simulated": True,
           "headers": [list(pair) for pair in exchange.headers]}
    for number, piece in enumerate(row.sent, 1):
        yield {"type": "bytes", "request": "r1", **_packed(piece), "ms": MS * number}
    yield {"type": "end", "request": "r1", "end": "eof"}


def _packed(piece: bytes) -> dict[str, str]:
    try:
        return {"text": piece.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(piece).decode("ascii")}
