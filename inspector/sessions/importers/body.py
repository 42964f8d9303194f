"""One response body in a file of its own: JSON, server-sent events, NDJSON, a JSON array, a binary event stream.

Which API it is comes from its content, or from the caller. Owns the explanations of what a file is when it is none.

Further down: a first look at a file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import from_json

from inspector.sessions import traffic
from inspector.sessions.recording import Options, Raw, Reading, UnreadableError

# -- A first look at a file ------------------------------------------------------------------------------------------
# What its first bytes are, parsed as far as they go.
# Shared by the importers' `sniff`; knows no file format. Whole heads are cached, because each importer looks at the
# same.

_LINES = 8


class Look(NamedTuple):
    """What a head holds."""

    first: Any
    """Its first JSON value, as far as it goes; None where it begins with none."""
    lines: tuple[Any, ...]
    """The JSON values of its first lines, the last of them perhaps cut; empty unless there are several."""
    text: bytes
    """The head without mark and leading white space."""


@lru_cache(maxsize=4)
def look(head: bytes) -> Look:
    """Parses the beginning of a file."""
    text = (head[3:] if head.startswith(b"\xef\xbb\xbf") else head).lstrip()
    if text[:1] not in (b"{", b"["):
        return Look(None, (), text)
    end = text.find(b"\n")
    first_line = partial(text[:end]) if end > 0 else None
    if end > 0 and first_line is not None and complete(text[:end]):
        lines = [line for line in text.split(b"\n")[: _LINES * 4] if line.strip()]
        values = [value for value in map(partial, lines[:_LINES]) if value is not None]
        return Look(first_line, tuple(values), text)
    return Look(partial(text), (), text)


def partial(text: bytes) -> Any:
    """The JSON value that `text` begins, cut where it ends; None where it is no JSON."""
    try:
        return from_json(text, allow_partial="trailing-strings")
    except ValueError:
        try:
            return from_json(traffic.mend(text.decode("utf-8", "replace")), allow_partial="trailing-strings")
        except ValueError:
            return None


def complete(text: bytes) -> bool:
    """Whether `text` is one whole JSON value."""
    try:
        traffic.loads(text)
    except ValueError:
        return False
    return True

_EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_ANY = "JSON, server-sent events, NDJSON, an Amazon event stream, a HAR, request/response pairs or a session file"


class BodyImporter:
    """A single body as it came over the wire."""

    name = "body"

    def sniff(self, head: bytes, path: str) -> int:
        """Recognised content is likely ours; other text is taken only to say what it is not."""
        text = look(head).text
        if text[:1] not in (b"{", b"[") and not text.startswith(_EVENT_STARTS) and not traffic.is_event_stream(head):
            return 0
        return 50 if traffic.by_content(head) is not None else 5

    def read(self, data: bytes, path: str, options: Options) -> Reading:
        """The one response of the file."""
        found = traffic.by_content(data)
        if options.api is not None and found is not None and found != options.api:
            raise UnreadableError(
                f"by its content this is {found}, not {options.api}: expected `--api {found}`, or none"
            )
        api = options.api or found
        if api is None:
            raise UnreadableError(_explain(data))
        error = None if traffic.is_event_stream(data) else traffic.utf8_error(data)
        return Reading(raws=[Raw(0, api=api, body=data)], error=error)


def _explain(data: bytes) -> str:
    if traffic.is_event_stream(data):
        return "a Bedrock InvokeModel event stream: not read yet (expected ConverseStream)"
    text = look(data[: 1 << 16]).text
    if text[:1] not in (b"{", b"["):
        return "server-sent events of no API that is known: expected one of the known APIs, or `--api ID`"
    try:
        return _explain_json(traffic.loads(data))
    except ValueError as why:
        return f"no valid JSON ({why}): expected {_ANY}"


def _explain_json(value: Any) -> str:
    if isinstance(value, dict):
        if "error" in value or value.get("type") == "error":
            return "an error body, which several APIs share: expected `--api ID` to say whose it is"
        if any(key in value for key in ("messages", "contents", "input", "prompt")) and not _answers(value):
            return 'a request without its response: expected a response, or both as {"request": …, "response": …}'
    elif isinstance(value, list) and value and isinstance(value[0], dict) and "role" in value[0]:
        return "a list of messages, without any response as a provider sent it: expected response bodies"
    return "JSON of no API and no session format that is known: expected a known one, or `--api ID`"


def _answers(value: dict[str, Any]) -> bool:
    return any(key in value for key in ("choices", "candidates", "output", "stop_reason", "stopReason", "done"))
