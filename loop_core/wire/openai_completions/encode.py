"""`ChatResponse` -> the bytes that a completions server would send for it, whole or as an event stream.

Owns nothing but the writing: what `decode` reads from these bytes is the response again, `LOSES` left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import ChatResponse, OpaquePart, TextPart
from loop_core.wire.body import dump, non_null, pieces
from loop_core.wire.openai_chat.table import write_usage
from loop_core.wire.openai_completions.table import API

_NATIVE = ("stop_reason",)
"""Words beside the finish reason of a choice (vLLM)."""


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item an event when streamed, with `chunk` characters of text in each.

    Raises:
        EncodeError: the response holds what a completion cannot carry; `what` names it.
    """
    _refuse(response)
    if stream:
        yield from _stream(response, max(1, chunk))
    else:
        yield dump(_body(response)).encode()


def _refuse(response: ChatResponse) -> None:
    for part in response.parts:
        if type(part) is OpaquePart:
            raise EncodeError("a completion is text", api=API, what="opaque")
    if response.continuation_token is not None:
        raise EncodeError("a completion cannot be continued by a token", api=API, what="continuation_token")
    for name in response.native:
        if name not in (*_NATIVE, "truncated"):
            raise EncodeError(f"a completion has no field {name!r}", api=API, what=f"native.{name}")


def _body(response: ChatResponse) -> dict[str, Any]:
    error = _error(response)
    if error and not response.parts and response.stop_reason.raw is None and response.usage is None:
        return {**(_head(response) if response.id or response.model else {}), **error}
    return {**_head(response), "choices": [_choice(response, response.text or "", last=True)], **_beside(response),
            **error}


def _stream(response: ChatResponse, chunk: int) -> Iterator[bytes]:
    head, error = _head(response), _error(response)
    texts = [part.text for part in response.parts if type(part) is TextPart]
    for text in texts:
        for piece in pieces(text, chunk):
            yield _event({**head, "choices": [_choice(response, piece, last=False)]})
    ended = response.stop_reason.raw is not None or bool(set(_NATIVE) & set(response.native))
    if ended:
        yield _event({**head, "choices": [_choice(response, "", last=True)]})
    beside = _beside(response)
    if beside or (not ended and not texts and not error and (response.id or response.model)):
        yield _event({**head, "choices": [], **beside})
    if error:
        named = not ended and not texts and not beside and bool(response.id or response.model)
        yield _event({**head, **error} if named else error)
    if response.saw_done or (response.stop_reason.raw and not error):
        yield b"data: [DONE]\n\n"


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + dump(value).encode() + b"\n\n"


def _head(response: ChatResponse) -> dict[str, Any]:
    return {"id": response.id or "", "object": "text_completion", "created": 0, "model": response.model or ""}


def _choice(response: ChatResponse, text: str, *, last: bool) -> dict[str, Any]:
    choice: dict[str, Any] = {"text": text, "index": 0, "logprobs": None}
    if not last:
        return {**choice, "finish_reason": None}
    words = {name: response.native[name] for name in _NATIVE if name in response.native}
    return {**choice, "finish_reason": response.stop_reason.raw, **words}


def _beside(response: ChatResponse) -> dict[str, Any]:
    truncated = response.native.get("truncated")
    return non_null(truncated={"true": True, "false": False}.get(truncated, truncated) if truncated else None,
                    usage=None if response.usage is None else write_usage(response.usage))


def _error(response: ChatResponse) -> dict[str, Any]:
    error = response.error
    return {} if error is None else {"error": {"message": error.message, "type": error.type, "code": error.code}}
