"""Makes the sample sessions that are written by hand: `python tests/samples/make.py FOLDER`.

Each response is said as a value and encoded in its provider's own wire format, so that its bytes are what that provider
would send; a test makes them again and compares. The stories are in `stories.py`.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loop_core.values import ChatResponse
from loop_core.wire import wire

PROVENANCE = "written by hand and encoded in the provider's wire format"

URLS = {
    "openai_chat": "https://api.openai.com/v1/chat/completions",
    "openai_responses": "https://api.openai.com/v1/responses",
    "anthropic_messages": "https://api.anthropic.com/v1/messages",
    "gemini_generate": "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent",
    "bedrock_converse": "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-sonnet-4-5/converse-stream",
    "ollama_chat": "http://127.0.0.1:11434/api/chat",
}
TYPES = {
    "bedrock_converse": "application/vnd.amazon.eventstream",
    "ollama_chat": "application/x-ndjson",
}


@dataclass(frozen=True)
class Exchange:
    """One exchange of a story: the request body, and the response as a value or as bytes that no encoder writes."""

    request: dict[str, Any]
    response: ChatResponse | bytes
    stream: bool = True
    chunk: int = 12
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Story:
    """One sample session."""

    file: str
    api: str
    title: str
    story: str
    end_state: str
    exchanges: tuple[Exchange, ...]
    url: str = ""
    provenance: str = PROVENANCE
    limits: dict[str, int] = field(default_factory=dict)


def records(story: Story) -> Iterable[dict[str, Any]]:
    """The lines of the session file."""
    yield {
        "loop_inspector_session": 1, "title": story.title, "story": story.story, "provenance": story.provenance,
        "end_state": story.end_state,
    }
    if story.limits:
        yield {"type": "limits", "values": story.limits}
    for number, asked in enumerate(story.exchanges, start=1):
        key = f"r{number}"
        yield {
            "type": "request", "id": key, "api": story.api, "method": "POST", "url": story.url or URLS[story.api],
            "headers": [["Content-Type", "application/json"]], "body": asked.request,
        }
        kind = TYPES.get(story.api, "text/event-stream") if asked.stream else "application/json"
        headers = [["Content-Type", kind], *(list(pair) for pair in asked.headers)]
        yield {"type": "response", "request": key, "status": asked.status, "headers": headers}
        for milliseconds, piece in enumerate(_pieces(story.api, asked), start=1):
            yield {"type": "bytes", "request": key, **_pack(piece), "ms": 40.0 * milliseconds}
        yield {"type": "end", "request": key, "end": "eof"}


def _pieces(api: str, asked: Exchange) -> list[bytes]:
    if isinstance(asked.response, bytes):
        return [asked.response]
    return list(wire(api).encode(asked.response, stream=asked.stream, chunk=asked.chunk))


def _pack(piece: bytes) -> dict[str, str]:
    try:
        return {"text": piece.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(piece).decode("ascii")}


def file_text(story: Story) -> str:
    """The whole file."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records(story))


def main(folder: Path) -> None:
    """Writes every story."""
    from tests.samples.stories import STORIES

    for story in STORIES:
        (folder / story.file).write_text(file_text(story), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
