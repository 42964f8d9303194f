"""One exchange for other tools: a curl command, a test of the engine, and the records of a session file.

Credentials were masked when it was read; where one stood, the command names an environment variable.
"""

from __future__ import annotations

import binascii
import json
import shlex
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

from inspector.report.facts import ResponseFacts
from inspector.sessions import detection, redact
from inspector.sessions.values import Exchange
from loop_core.errors import CallerError
from loop_core.values import TransportEnd

KEY = "API_KEY"
"""The environment variable that a command reads the credential from."""
_OWN = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding", "content-encoding"})
"""Headers that curl makes itself."""


def curl(facts: ResponseFacts) -> str:
    """The request as a curl command, for a POSIX shell; it prints the bytes as they arrive.

    Raises:
        CallerError: the recording holds no request, or no address to send it to.
    """
    exchange = facts.exchange
    if facts.recut is not None:
        raise CallerError(f"{facts.name}: nothing was sent for it; choose a recorded response")
    if exchange.request_json is None or not exchange.url.startswith(("http://", "https://")):
        raise CallerError(f"{facts.name}: its request was not recorded, so there is nothing to send")
    address = redact.url(exchange.url)
    words = [f"curl -sS --no-buffer -X POST {_shell(address)}"]
    sent = {name.lower() for name, _ in exchange.request_headers}
    words += [f"-H {_shell(f'{name}: {value}')}" for name, value in redact.headers(exchange.request_headers)
              if name.lower() not in _OWN and not name.startswith(":")]
    if "content-type" not in sent:
        words.append("-H 'content-type: application/json'")
    body = json.dumps(redact.values(exchange.request_json), ensure_ascii=True)
    words.append(f"--data-binary {shlex.quote(body)}")
    return " \\\n  ".join(words) + "\n"


def _shell(text: str) -> str:
    """A word of the command; a masked credential becomes the variable."""
    clean = "".join(char for char in text if char.isprintable())
    return f'"${KEY}"'.join(shlex.quote(part) if part else "" for part in clean.split(detection.REDACTED)) or "''"


def fixture(facts: ResponseFacts) -> str:
    """The response as a test of the engine: its bytes, and the facts that they were read to.

    Raises:
        CallerError: the body was not recorded, or holds an agent's rows.
    """
    exchange, stop = facts.exchange, facts.judged.mapped
    _of_provider(exchange)
    if not exchange.recorded:
        raise CallerError(f"{facts.name}: its body was not recorded")
    response = exchange.response
    calls = [(call.name, call.arguments) for call in response.tool_calls]
    words = f", words=named({exchange.profile.name!r}).words" if exchange.profile.words else ""
    status = "" if response.http_status is None else f", http_status={response.http_status}"
    return "\n".join([
        f'"""{"Recorded: " if facts.recut is None else ""}{exchange.api}, {facts.name}."""',
        "",
        "from loop_core import decode_response",
        *(["from loop_core.wire.profiles import named"] if words else []),
        "",
        f"BODY = {_pieces(exchange.body)}",
        "",
        "",
        "def test_recorded_response():",
        f"    response = decode_response({exchange.api!r}, [BODY]{status}{words})",
        f"    assert response.raw_stop_reason == {stop.raw!r}",
        f"    assert response.stop_reason.normalized == {stop.normalized.value!r}",
        f"    assert response.text == {response.text!r}",
        f"    assert [(call.name, call.arguments) for call in response.tool_calls] == {calls!r}",
        "",
    ])


def _pieces(body: bytes) -> str:
    lines = body.splitlines(keepends=True) or [b""]
    return "(\n" + "".join(f"    {line!r}\n" for line in lines) + ")"


def records(exchanges: Iterable[Exchange]) -> Iterator[dict[str, Any]]:
    """The records of a session file that holds these exchanges, with the times at which their bytes came.

    Raises:
        CallerError: one of them holds an agent's rows.
    """
    for number, exchange in enumerate(exchanges):
        _of_provider(exchange)
        key = f"r{number}"
        yield {
            "type": "request", "id": key, "api": exchange.api, "profile": exchange.profile.name, "url": exchange.url,
            "headers": [list(pair) for pair in redact.headers(exchange.request_headers)],
            **({"body": exchange.request_json} if exchange.request_json is not None else {}),
            **({"at": exchange.started} if exchange.started else {}),
        }
        yield {"type": "response", "request": key, "status": exchange.response.http_status,
               **({"simulated": True} if exchange.simulated else {}),
               "headers": [list(pair) for pair in redact.headers(exchange.headers)]}
        if not exchange.recorded and exchange.response.transport_end is not TransportEnd.CUT:
            yield {"type": "end", "request": key, "end": "not_recorded"}
            continue
        start = 0
        for chunk in exchange.chunks or ():
            yield _bytes(key, exchange.body[start : chunk.end], chunk.ms)
            start = chunk.end
        if start < len(exchange.body):
            yield _bytes(key, exchange.body[start:], None)
        if exchange.response.transport_end is not TransportEnd.CUT:  # the absence of this record says it
            yield {"type": "end", "request": key, "end": exchange.response.transport_end.value}


def _of_provider(exchange: Exchange) -> None:
    if exchange.recorder is not None:
        lines = f"lines {exchange.lines[0]} to {exchange.lines[-1]}" if exchange.lines else "its lines"
        raise CallerError(
            f"{exchange.path}: rows of {exchange.recorder} hold no provider's bytes: expected another form, "
            f"or share {lines} of the transcript"
        )


def _bytes(key: str, data: bytes, ms: float | None) -> dict[str, Any]:
    try:
        piece = {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        piece = {"base64": binascii.b2a_base64(redact.body(data), newline=False).decode("ascii")}
    known = ms is not None and 0 <= ms < inf
    return {"type": "bytes", "request": key, **piece, **({"ms": ms} if known else {})}
