"""Finds the API of an exchange: by its URL path, else by its content.

Each wire format recognises its own content. The module has a table of unsupported LLM traffic, which is named instead
of dropped silently. It also parses JSON that is not UTF-8 or contains bare control characters, in a slower second
attempt, and reads times in any of their forms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from inspector.sessions import redact
from loop_core.json_parser import from_json, from_json_prefix
from loop_core.wire import FORMATS, wire
from loop_core.wire.failures import REDIRECTS
from loop_core.wire.framing import SEPARATOR, SSE, TextSequence
from loop_core.wire.json_values import is_in_lines

# -- JSON that is not UTF-8, or contains bare control characters -----------------------------------------------------
# It is read in a slower second attempt. The fast parser refuses lone surrogates (`"\ud83d"`), which JavaScript writes
# when it cuts a string. They become U+FFFD, so that the text can be written and shown.

_ESCAPE = (
    r"\\(?:[^u]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|u)"
)
_NUMBER = r"(?<=[:\[,])\s*-?[0-9][-+0-9.eE]*\Z"
_LARGEST_TIME = 1e18
"""The largest number of milliseconds that counts as a time: thirty million years."""


def loads(text: str | bytes) -> Any:
    """The value of a JSON text. Raises `ValueError` if it is not JSON."""
    try:
        return from_json(text.encode() if isinstance(text, str) else text)
    except (ValueError, TypeError):
        return reparse(text)


def reparse(text: str | bytes) -> Any:
    """The value of a JSON text that the fast parser refused. Raises `ValueError` if it is not JSON."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        return json.loads(mend(text.removeprefix("\ufeff")), strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as why:
        raise why if isinstance(why, json.JSONDecodeError) else ValueError("a number has too many digits") from None


def parse_beginning(text: str) -> Any:
    """The value of the beginning of a cut JSON text, without a number at the cut, which may be incomplete. Raises
    `ValueError` if it is not the beginning of a JSON text."""
    return from_json_prefix(re.sub(_NUMBER, "", text).encode("utf-8", "replace"))


def mend(text: str) -> str:
    """The JSON text, of the same length, with lone surrogates replaced."""
    if "\\ud" not in text and "\\uD" not in text:  # no surrogate; the replacement would cost a call for each escape
        return text
    return re.sub(_ESCAPE, lambda match: "\\ufffd" if match[1] else match[0], text)


def failure(value: Any) -> str:
    """The error message in an object about a request without an answer; empty if there is none."""
    of_vertex = isinstance(value, dict) and "processed_time" in value  # a row of its batches has the error in `status`
    said = (value.get("error") or (of_vertex and value.get("status"))) if isinstance(value, dict) else None
    while isinstance(said, dict):  # an error inside an error (vLLM)
        said = said.get("message") or said.get("errorMessage") or said.get("error") or str(said)
    words = " ".join(redact.text(str(said or "")).split())
    return f"failed before any answer: {words[:120]}" if words else ""


def number(value: Any) -> float | None:
    """A value as a number; None if it is not a number, or too large for a float (JSON integers are unbounded)."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not -_LARGEST_TIME < value < _LARGEST_TIME:
        return None
    return float(value)


def http_status(value: Any) -> int | None:
    """A value as an HTTP status; None if it is not a valid one."""
    return value if type(value) is int and 100 <= value < 1000 else None


def written_status(value: Any) -> int | None:
    """An HTTP status that may be written as a text of three digits; None if it is not one."""
    return http_status(int(value) if isinstance(value, str) and re.fullmatch("[0-9]{3}", value) else value)


def says_enough(status: int | None) -> bool:
    """Whether a response without a body is complete: an error, or a redirect."""
    return status is not None and (status >= 400 or status in REDIRECTS)


def header(pairs: Iterable[tuple[str, str]], name: str) -> str:
    """The value, in lower case, of the first header with this name, which is in lower case; empty if there is none."""
    return next((str(value).strip().lower() for key, value in pairs if str(key).lower() == name), "")


BROWSER_STREAMS = frozenset({"x-vercel-ai-ui-message-stream", "x-vercel-ai-data-stream"})
"""The headers that Vercel's AI SDK adds to a stream for the browser."""


def is_browser_stream(pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether one of these headers marks a stream to the browser, which no provider sent and which has its own
    importer."""
    return any(str(name).lower() in BROWSER_STREAMS for name, _ in pairs)


def headers(value: Any) -> list[tuple[str, str]]:
    """The headers of an HTTP message in any of the forms in which recorders write them."""
    if isinstance(value, dict):
        # cassettes hold a list of values for each header
        return [(str(name), str(each)) for name, item in value.items()
                for each in (item if isinstance(item, list) and item else [item])]
    pairs = [(item.get("name"), item.get("value", "")) if isinstance(item, dict) else item
             for item in value] if isinstance(value, list) else []
    return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, (list, tuple)) and len(pair) == 2]


BEFORE = ("blocked", "dns", "connect", "send", "wait")
"""The phases of a HAR entry before the first byte of the answer; `ssl` is part of `connect`."""


def before_first_byte(timings: Any) -> float | None:
    """Milliseconds from the request to the first byte of the answer, by a HAR entry's timings; None if unknown."""
    if not isinstance(timings, dict) or (number(timings.get("wait")) or 0) <= 0:
        return None  # HAR writes -1 for unknown; converters write zeros
    # HAR writes -1 for a phase that does not apply (http://www.softwareishard.com/blog/har-12-spec/#timings).
    return sum(max(0.0, number(timings.get(phase)) or 0.0) for phase in BEFORE)


def utf8_error(data: bytes) -> str | None:
    """The first UTF-8 error in `data`, as one line; None if there is none."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as why:
        return f"invalid UTF-8 at byte {why.start}: expected UTF-8; the rest was read"
    return None


class Unread(NamedTuple):
    """LLM traffic that is recognised but not supported."""

    name: str
    path: str
    """The pattern of the path, which is compiled only when no format recognises a path."""


UNREAD: tuple[Unread, ...] = (
    Unread(
        "token counting", r"/messages/count_tokens$|:countTokens$|/responses/input_tokens$|/tokenize$|/count-tokens$"
    ),
    Unread("a batch", r"(?<!/tracing)(?<!/tracing/ephemeral)/batches(/|$)|/batch/jobs(/|$)|/batchPredictionJobs"
                      r"|:batchGenerateContent$"),
    Unread("OpenAI Responses, a stored item", r"/responses/[^/]+/(cancel|input_items|compact)$"),
    Unread("a compaction of OpenAI Responses", r"/responses/compact$"),
    Unread("embeddings", r"/embeddings$|/embed$|:embedContents?$|:batchEmbedContents$|/api/embed(dings)?$"
                         r"|/model/[^/]*embed[^/]*/invoke$|/models/[^/]*embed[^/]*:predict$"),
    Unread("a cache of contents", r"/cachedContents(/|$)"),
    Unread("reranking", r"/rerank$"),
    Unread("moderation", r"/moderations$"),
    Unread("images", r"/images/(generations|edits|variations)$|/image/generate$|:predict(LongRunning)?$"),
    Unread("audio", r"/audio/(speech|transcriptions|translations)$"),
    Unread("a realtime session", r"/realtime(/|$)|BidiGenerateContent"),
    Unread("OpenAI Assistants", r"/threads(/|$)|/assistants(/|$)"),
    Unread("a list of models", r"/models(/[^/:]+)?$|/api/tags$"),
    Unread("files", r"/files(/|$)"),
    Unread("Bedrock agents", r"/agents/[^/]+/agentAliases/|/retrieveAndGenerate"
                             r"|bedrock-agent-runtime[^/]*/agents/[^/]+$"),
    Unread("Cohere generate", r"cohere.*/generate$|/v1/generate$"),
    Unread("AI21 Jurassic", r"ai21[^/]*/studio/.*complete$"),
    Unread("Aleph Alpha", r"aleph-alpha[^/]*/complete$"),
    Unread("Replicate", r"replicate[^/]*/v1/(.*/)?predictions(/[^/]+)?$"),
    Unread("a SageMaker endpoint", r"/endpoints/[^/]+/invocations(-response-stream)?$"),
    Unread("text recognition (OCR)", r"/v1/ocr$"),
    Unread("xAI gRPC", r"^grpc:.*xai|/xai_api\."),
)
"""Unsupported LLM traffic. For a path that no format recognises, the first row that matches counts."""

UNREAD_BODIES = (
    ("text generation of Hugging Face (TGI)", re.compile(rb'"generated_text"\s*:')),
    ("a completion in llama.cpp's own format", re.compile(rb'"tokens_predicted"\s*:')),
)
"""Unsupported LLM traffic that its answer tells, because its path may be anything: `/generate`, `/completion`."""

EMBEDDINGS = re.compile(rb'\s*\{\s*"embeddings?(?:ByType)?"\s*:')
"""Matches the beginning of a body of embeddings, for a URL without the model's name (a Bedrock profile)."""
_CONTENT_MARKS = tuple(mark for row in FORMATS.values() for mark in row.body_pieces)
_MOST_FRAMES = 24  # frames at the beginning of a body that are examined


@lru_cache(maxsize=1024)
def by_path(url: str) -> str | None:
    """The API of this URL's path; None if no format knows it."""
    path = path_of(url)
    # Formats with a matching hint are tried first, so that reading a file does not import all formats.
    hinted = [api for api, row in FORMATS.items() if any(hint in path for hint in row.path_pieces)]
    for api in (*hinted, *(api for api in FORMATS if api not in hinted)):
        if any(pattern.search(path) for pattern in wire(api).paths):
            return api
    return None


@lru_cache(maxsize=1024)
def unread(url: str) -> str | None:
    """The name of the unsupported LLM traffic at this URL; None for any other URL."""
    path = path_of(url).rstrip("/")
    whole = url.split("?", 1)[0].split("#", 1)[0].rstrip("/")
    for row in UNREAD:
        if re.search(row.path, path) or re.search(row.path, whole):  # gRPC is recognised by the scheme
            return row.name
    return None


def path_of(url: str) -> str:
    """The path of a URL, without scheme, host, query and fragment."""
    rest = url.split("?", 1)[0].split("#", 1)[0]
    _, found, after = rest.partition("://")
    if not found:
        return rest
    slash = after.find("/")
    return after[slash:] if slash >= 0 else "/"


def host_of(url: str) -> str:
    """The host of a URL in lower case, with the port if there is one; empty if there is no host."""
    _, found, after = url.partition("://")
    return after.split("/", 1)[0].split("?", 1)[0].rsplit("@", 1)[-1].lower() if found else ""


EVENT_TYPE = b":event-type"
"""The name of the header in a binary frame for the frame's type."""


def by_content(body: bytes) -> str | None:
    """The API of these response bytes, whole or cut; None if no format recognises them."""
    if is_event_stream(body):
        kinds = [(len(piece), api) for api, row in FORMATS.items() for piece in row.body_pieces
                 if piece == EVENT_TYPE or (EVENT_TYPE in piece and piece in body[:4096])]
        return max(kinds)[1]  # the longest match is the most specific
    # A search for short texts avoids parsing most bodies that are no LLM traffic, such as pages and images in a HAR.
    if not any(mark in body for mark in _CONTENT_MARKS):
        return None
    alone = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and not is_in_lines(body)
    for value, event in samples(body):
        if "role" in value and "type" not in value and not alone:
            continue  # a row of a conversation; only a lone object may be a response of Messages without its type
        for api in FORMATS:
            if wire(api).recognises(value, event):
                return api
    return None


def is_event_stream(body: bytes) -> bool:
    """Whether the bytes begin with a frame of Amazon's binary event stream."""
    if len(body) < 16 or body[0] != 0:  # a frame below 16 MB begins with a zero
        return False
    # Lengths of the frame and of its headers, then a checksum; the first header is a string (type 7) such as
    # :event-type or :message-type (botocore eventstream.py).
    total, headers = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
    return headers < total <= 1 << 25 and b":" in body[12:16] and b"-type\x07" in body[12:300]


def samples(body: bytes) -> Iterator[tuple[dict[str, Any], str | None]]:
    """The first JSON objects of a body of any text framing, with their event names."""
    # A parser may ignore a byte order mark (RFC 8259, section 8.1).
    text = body[3:] if body.startswith(b"\xef\xbb\xbf") else body
    text = text.lstrip()
    if text[:1] == b"{":
        lines = is_in_lines(text)
        whole = None if lines else _object(text)
        if whole is not None:
            yield whole, None
        elif b"\n" in text:
            for line in text[: 1 << 20].split(b"\n")[:_MOST_FRAMES]:
                value = _object(line)
                if value is not None:
                    yield value, None
    elif text[:1] == b"[":
        values = parse_prefix(text)
        for value in values[:_MOST_FRAMES] if isinstance(values, list) else ():
            if isinstance(value, dict):
                yield value, None
    else:
        splitter = TextSequence() if text[:1] == SEPARATOR else SSE()
        for payload, name, _, _ in [*splitter.feed(text[: 1 << 18]), *splitter.flush()][:_MOST_FRAMES]:
            value = _object(payload)
            if value is not None:
                yield value, name


def _object(text: bytes) -> dict[str, Any] | None:
    value = parse_prefix(text)
    return value if isinstance(value, dict) and value else None


def parse_prefix(text: bytes) -> Any:
    """The JSON value at the beginning of `text`, even if it is cut; None if it is not JSON."""
    try:
        return from_json_prefix(text)
    except ValueError:
        try:
            return from_json_prefix(mend(text.decode("utf-8", "replace")).encode())
        except ValueError:
            return None


# -- Recorded times --------------------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Recorders write seconds, milliseconds, microseconds or nanoseconds without naming the unit. 1e11 seconds would be in
# the year 5138, so a larger number has a smaller unit.
UNITS = ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3), (float("inf"), 1))
"""The upper bound of a number in each unit (seconds to nanoseconds), and its nanoseconds."""


def moment(text: str | None) -> int | None:
    """A recorded time in nanoseconds since the epoch; None if there is none. A time without a zone is read as UTC."""
    if text is None:
        return None
    try:
        # Nearly every recorder writes a date. Trying to convert one to a number takes as long as parsing it.
        number = None if text[4:5] == "-" and text[:4].isdecimal() else float(text)
    except ValueError:
        number = None
    if number is None:
        try:
            read = datetime.fromisoformat(text)
        except ValueError:
            return None
        read = read if read.tzinfo else read.replace(tzinfo=UTC)
        return _whole((read - _EPOCH) // timedelta(microseconds=1) * 1_000)
    scale = next((unit for most, unit in UNITS if number < most), 0)
    return _whole(int(number * scale)) if number > 0 and scale else None


def _whole(number: int) -> int | None:
    # 64-bit nanoseconds end in the year 2262; a later time is an error of the recorder.
    return number if 0 < number < 2**63 else None


def times_of(started: Mapping[int, str | None]) -> tuple[dict[int, float], bool]:
    """Recorded start times as numbers, and whether they are reliable. Empty without recorded times, when the order in
    the file counts."""
    stated = {*started.values()}
    if stated == {None}:
        return {}, True
    if len(stated) == 1:  # the default value of a converter
        return dict.fromkeys(started, 0.0), False
    moments = {index: moment(text) for index, text in started.items()}
    reliable = None not in moments.values()  # an exchange without a time may be anywhere
    return {index: when or 0.0 for index, when in moments.items()}, reliable
