"""`ChatResponse` -> the bytes that Ollama would send for it from `/api/generate`.

The objects are those of a chat with the message's fields beside the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import ChatResponse
from loop_core.wire.body import dump
from loop_core.wire.ollama_chat.encode import body_of, lines_of, losses
from loop_core.wire.ollama_generate.table import API


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item a line when streamed, with `chunk` characters of text in each.

    Raises:
        EncodeError: the response holds what Ollama cannot carry; `what` names it.
    """
    for what, why in losses(response, stream):
        raise EncodeError(why, api=API, what=what)
    if stream:
        for line in lines_of(response, max(1, chunk)):
            yield dump(_flat(line)).encode() + b"\n"
    else:
        yield dump(_flat(body_of(response))).encode()


def _flat(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a chat as one of generate."""
    message = line.get("message")
    if message is None:
        return line  # an error
    said = {"response": message["content"], **{k: message[k] for k in ("thinking", "tool_calls") if k in message}}
    return {**{name: value for name, value in line.items() if name != "message"}, **said}
