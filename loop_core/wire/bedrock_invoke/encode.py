"""`ChatResponse` -> the bytes that InvokeModel would send for it from Claude: a message, or its events in chunks."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace

from loop_core.errors import EncodeError
from loop_core.values import ChatResponse
from loop_core.wire.anthropic_messages.encode import encode as encode_message
from loop_core.wire.bedrock_converse.encode import encode as encode_error
from loop_core.wire.bedrock_invoke.table import API
from loop_core.wire.body import compact
from loop_core.wire.eventstream import event_frame
from loop_core.wire.framing import SSE


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one frame an event when streamed.

    Raises:
        EncodeError: the response holds what a message of Claude cannot carry; `what` names it.
    """
    if response.error is not None and not response.parts:
        yield from encode_error(replace(response, api="bedrock_converse"), stream=stream)
        return
    try:
        written = list(encode_message(replace(response, api="anthropic_messages"), stream=stream, chunk=chunk))
    except EncodeError as refused:
        raise EncodeError(str(refused), api=API, what=refused.what) from None
    if not stream:
        yield from written
        return
    events = SSE()
    for piece in (*events.feed(b"".join(written)), *events.flush()):
        yield event_frame("chunk", compact({"bytes": base64.b64encode(piece[0]).decode()}).encode())
