"""HTTP messages as text: the output of `curl -i`, `curl -v` and HTTPie, and files that editors' REST clients save.

A file has answers, each with its status line, headers and body, and perhaps the request before each. `curl -v` marks
the lines of a request with `>`, those of an answer's head with `<` and its own notes with `*`; it does not print the
body of a request. A line `curl: (18) …` shows how the connection ended. Source: the manual page of curl (`-i`, `-v`,
EXIT CODES), and outputs of curl 7.88 and HTTPie 3.2 (without colours).
"""

from __future__ import annotations

import re
from itertools import pairwise, zip_longest
from typing import NamedTuple

from inspector.sessions import traffic
from inspector.sessions.importers.httprr import exchange_of
from inspector.sessions.intake import Room
from inspector.sessions.recording import FileReading, Options, RawExchange, UnreadableError
from loop_core.values import TransportEnd

_BEGIN = re.compile(
    rb"^(?:< )?HTTP/[0-9](?:\.[0-9])? (?P<status>[0-9]{3})\b.*\n?"
    rb"|(?<=[}\]])HTTP/[0-9](?:\.[0-9])? (?P<next_status>[0-9]{3})(?: [A-Za-z -]*)?\r\n"
    rb"|^(?:> )?(?:GET|POST|PUT|PATCH|DELETE) [^ \r\n]+ HTTP/[0-9](?:\.[0-9])?\r?\n", re.MULTILINE)
"""Matches the first line of a request, or of an answer (HTTP/2 has no reason phrase), also right after a JSON body
without a line end."""
_CURL = re.compile(rb"\* |> |< |  % Total|Note: |Warning: |curl: \(|[^\n{\[]{,200}\b(?:curl|https?) .*\n")
"""Matches the beginning of curl's messages (standard error), or a line with the command."""
_NOTE = re.compile(rb"\* .*\n?|[<>] .*\n?|[<>]\r?\n|[{}] \[[0-9]+ bytes data\]\r?\n?")
_GLUED_NOTE = re.compile(
    rb"\* (?:Connection #[0-9]+ to host [^ ]+ left intact|Closing connection(?: [0-9]+)?)\r?\n?\Z")
"""Matches a note right after a body without a line end, on the last line of the body."""
_METER = re.compile(rb"  % Total .*\n.*Speed\r?\n"
                    rb"|\r *[0-9]{1,3}(?: +[0-9.kMGTP]+){7}(?: +[0-9:-]+){3} +[0-9.kMGTP]+\n?")
"""Matches the progress meter of curl, without a line end before the next text."""
_FAILED = re.compile(rb"curl: \((?P<code>[0-9]{1,3})\) (?P<text>[^\r\n\x22{}\\]*)(?:\r?\n|\Z)")
"""Matches curl's error about a failed connection; never a text that a JSON body quotes."""
EXIT_CODES = {18: TransportEnd.RESET, 28: TransportEnd.TIMEOUT, 56: TransportEnd.RESET, 92: TransportEnd.RESET}
"""Exit code of curl -> the end of the bytes: a partial file, a timeout, a failure while receiving, a stream of HTTP/2
that was not closed cleanly (manual page of curl, EXIT CODES)."""
_INTERIM = re.compile(rb"HTTP/\S+ (?:1[0-9]{2}\b|200 Connection established)", re.IGNORECASE)
"""Matches the first line of an interim answer: `100 Continue`, or that of a proxy to CONNECT."""


class _Message(NamedTuple):
    answers: bool
    """Whether the message is an answer, instead of a request."""
    text: bytes
    """The message in the form of HTTP/1.1."""
    failed: re.Match[bytes] | None
    """The match of curl's error about the connection; None if there is none."""


def sniff(head: bytes, path: str) -> int:
    """Recognises a message at the beginning, or after messages of curl."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    if _BEGIN.match(text):
        return 100
    return 90 if _CURL.match(text) and (_BEGIN.search(text) or _failure(text)) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads all answers, each with the request before it, and a request whose connection failed. Raises
    `UnreadableError` if there is neither."""
    text = _METER.sub(b"", data.removeprefix(b"\xef\xbb\xbf"))
    begins = [*_BEGIN.finditer(text)]
    # Standard output and standard error may be in any order, so the error may be before the answer.
    early = _failure(text[: begins[0].start()] if begins else text)
    if not begins:
        why = early["text"].decode("utf-8", "replace") if early else "expected a status line such as HTTP/1.1 200 OK"
        raise UnreadableError(f"messages of curl without an answer: {why}")
    text += early[0] if early else b""
    ends = [*(match.start() for match in begins), len(text)]
    messages = [_message(text[start:end], begin) for begin, (start, end) in zip(begins, pairwise(ends), strict=True)]
    messages = [each for each in messages if not _INTERIM.match(each.text)]
    if not any(each.answers or each.failed for each in messages):
        raise UnreadableError("HTTP requests without an answer: expected a status line such as HTTP/1.1 200 OK")
    reading, room, request, entry = FileReading(), options.room or Room(), b"", 0
    for each, after in zip_longest(messages, messages[1:]):
        if not each.answers and not each.failed and after is not None and after.answers:
            request = each.text
            continue
        sent, received = (request, each.text) if each.answers else (each.text, b"")
        raw = exchange_of(entry, sent, received, room) if received or each.failed else "a request without an answer"
        reading.add(entry, _with_end(raw, each.failed) if isinstance(raw, RawExchange) else raw)
        request, entry = b"", entry + 1
    return reading


def _failure(text: bytes) -> re.Match[bytes] | None:
    """The match of curl's error about a failed connection, on its own line or right after a body without a line end."""
    return next((match for match in _FAILED.finditer(text) if match.end() == len(text)
                 or match.start() == 0 or text.startswith(b"\n", match.start() - 1)), None)


def _message(text: bytes, begin: re.Match[bytes]) -> _Message:
    failed = _failure(text)
    if failed is not None:
        text = text[: failed.start()] + text[failed.end() :]
    mark = text[:2]
    if mark in (b"> ", b"< "):
        lines = text.splitlines(keepends=True)
        head = [line[2:].strip() for line in lines if line.startswith(mark)]
        # notes may be between any lines of the body
        body_lines = [line for line in lines if _NOTE.fullmatch(line) is None]
        body = b"".join([*body_lines[:-1], *(_GLUED_NOTE.sub(b"", line) for line in body_lines[-1:])])
    else:
        first, *rest = re.split(rb"\r?\n\r?\n", text, maxsplit=1)
        head, body = first.splitlines(), b"".join(rest)
    answers = bool(begin["status"] or begin["next_status"])
    return _Message(answers, b"\r\n".join([*filter(None, head), b"", body]), failed)


def _with_end(raw: RawExchange, failed: re.Match[bytes] | None) -> RawExchange:
    if failed is not None:
        raw.end = EXIT_CODES.get(int(failed["code"]), TransportEnd.ABORTED)
        raw.problem = failed["text"].decode("utf-8", "replace")
    elif not raw.body:  # only the head was printed (`curl -I`, `curl -v -o FILE`), unless it shows an empty body
        raw.recorded = traffic.says_enough(raw.status) or traffic.header(raw.headers, "content-length") == "0"
    return raw
