"""OpenAI's legacy completions, `POST /v1/completions`, which other servers implement too.

A choice holds a text instead of a message or delta. The decoder of Chat Completions reads everything else: reasons,
usage, filters, errors, several choices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from loop_core.errors import EncodeError
from loop_core.values import ChatResponse, Message, OpaquePart, Request, Role, Stop, TextPart
from loop_core.wire import asking
from loop_core.wire.body import dump, integer, merge, misfits, non_null, pieces, rest, sse_event, token_count, word
from loop_core.wire.failures import ForeignWord, StopRow
from loop_core.wire.format import ANY_PATH, Format, Home, Prefill
from loop_core.wire.openai_chat.decode import Decoder as ChatDecoder
from loop_core.wire.openai_chat.table import BODY_WORDS, write_body_words, write_usage
from loop_core.wire.openai_chat.table import READS as CHAT_READS
from loop_core.wire.openai_chat.table import STREAM_READS as CHAT_STREAM_READS
from loop_core.wire.reads import FactRow

API = "openai_completions"
NO_TOOLS = "a completion has neither tools nor calls"

_SDK = "openai 3.54.0 types/completion_choice.py:22"

STOP_REASONS: Mapping[str, StopRow] = {
    "stop": StopRow(Stop.END_TURN, None, _SDK),
    "length": StopRow(Stop.MAX_TOKENS, None, _SDK),
    "content_filter": StopRow(Stop.SAFETY_BLOCKED, None, _SDK),
    "error": StopRow(Stop.ERROR, "retryable: server failure under HTTP 200", "vllm v1/engine/__init__.py; mistral.rs"),
    "insufficient_system_resource": StopRow(
        Stop.ERROR, "retryable: no resources left, the output is partial", "DeepSeek API docs, Create FIM Completion"),
    "abort": StopRow(Stop.CANCELLED, None, "vllm v1/engine/__init__.py; sglang FINISH_ABORT: the request was aborted"),
}

LOSES: Mapping[str, str] = {
    **dict.fromkeys(("call", "server", "reasoning", "refusal", "text.phase"), "a completion is text"),
}

PATHS: tuple[re.Pattern[str], ...] = (
    # those two paths are Chat Completions'
    re.compile(r"(?<!/chat)(?<!/agents)/completions/?(?:$|[?#])"),
)


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON object is a text completion or a chunk of one, whose text is in the choice itself."""
    choices = value.get("choices")
    if event or not isinstance(choices, list):  # its events have no names
        return False
    if not choices:
        return value.get("object") in ("text_completion", "text.completion")
    first = choices[0]
    return (isinstance(first, Mapping) and isinstance(first.get("text"), str)
            and not isinstance(first.get("delta"), Mapping) and not isinstance(first.get("message"), Mapping))


_TEXT = FactRow("text", "/choices/*/text", ("/choices/*/index",))

STREAM_READS: tuple[FactRow, ...] = (*CHAT_STREAM_READS, _TEXT)
"""The rows for values that a stream delivers piece by piece. Mistral's fill-in-the-middle and Portkey's prompts answer
with messages, so the rows of Chat Completions are among them."""
READS: tuple[FactRow, ...] = (*CHAT_READS, _TEXT)


# -- Bytes, whole or streamed -> `ChatResponse` ----------------------------------------------------------------------
# Mistral's `/fim/completions` and Portkey's `/prompts/ID/completions` answer with messages, which are read as such.

class Decoder(ChatDecoder):
    """The decoder of one text completion."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = STOP_REASONS
    foreign_reasons: ClassVar[Mapping[str, ForeignWord]] = {}

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one chunk."""
        return super().on_event(_as_chat(event, "delta"), name)

    def on_body(self, body: Any) -> None:
        """Reads a whole completion or an error."""
        super().on_body(_as_chat(body, "message"))


def _as_chat(body: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """Returns the body with the text of each choice in a message; a choice that already holds a message keeps it."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return body
    chat_choices = [
        {**choice, field: {"content": choice["text"]}}
        if isinstance(choice, dict) and isinstance(choice.get("text"), str) and field not in choice else choice
        for choice in choices
    ]
    return {**body, "choices": chat_choices}


# -- `ChatResponse` -> the bytes that a completions server would send for it -----------------------------------------

_NATIVE = ("stop_reason",)
"""The fields of a choice with words about the end beside the finish reason (vLLM)."""


def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item per event when streamed, with `chunk` characters of text in each."""
    for what, why in _losses(response):
        raise EncodeError(why, api=API, what=what)
    if stream:
        yield from _stream(response, max(1, chunk))
    else:
        yield dump(_body(response)).encode()


def _losses(response: ChatResponse) -> Iterator[tuple[str, str]]:
    if any(type(part) is OpaquePart for part in response.parts):
        yield "opaque", "a completion is text"
    yield from misfits(response, (*_NATIVE, *BODY_WORDS))


def _body(response: ChatResponse) -> dict[str, Any]:
    error = _error(response)
    if error and not response.parts and response.stop_reason.raw is None and response.usage is None:
        return {**(_head(response) if response.id or response.model else {}), **error}
    return {**_head(response), "choices": [_choice(response, response.text or "", last=True)], **_metadata(response),
            **error}


def _stream(response: ChatResponse, chunk: int) -> Iterator[bytes]:
    head, error = _head(response), _error(response)
    texts = [part.text for part in response.parts if type(part) is TextPart]
    for text in texts:
        for piece in pieces(text, chunk):
            yield sse_event({**head, "choices": [_choice(response, piece, last=False)]})
    ended = response.stop_reason.raw is not None or bool(set(_NATIVE) & set(response.native))
    if ended:
        yield sse_event({**head, "choices": [_choice(response, "", last=True)]})
    beside = _metadata(response)
    if beside or (not ended and not texts and not error and (response.id or response.model)):
        yield sse_event({**head, "choices": [], **beside})
    if error:
        named = not ended and not texts and not beside and bool(response.id or response.model)
        yield sse_event({**head, **error} if named else error)
    if response.saw_done or (response.stop_reason.raw and not error):
        yield b"data: [DONE]\n\n"


def _head(response: ChatResponse) -> dict[str, Any]:
    return {"id": response.id or "", "object": "text_completion", "created": 0, "model": response.model or ""}


def _choice(response: ChatResponse, text: str, *, last: bool) -> dict[str, Any]:
    choice: dict[str, Any] = {"text": text, "index": 0, "logprobs": None}
    if not last:
        return {**choice, "finish_reason": None}
    words = {name: response.native[name] for name in _NATIVE if name in response.native}
    return {**choice, "finish_reason": response.stop_reason.raw, **words}


def _metadata(response: ChatResponse) -> dict[str, Any]:
    return write_body_words(response) | non_null(usage=None if response.usage is None else write_usage(response.usage))


def _error(response: ChatResponse) -> dict[str, Any]:
    error = response.error
    return {} if error is None else {"error": {"message": error.message, "type": error.type, "code": error.code}}


# -- Body of a recorded request -> `Request` -------------------------------------------------------------------------
# A prompt takes the place of a history. A prompt of token ids is kept in `extra` as sent.

def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; each of several prompts becomes a message of the user."""
    prompt, taken = body.get("prompt"), ["model", "max_tokens", "stream", "n"]
    texts = [prompt] if isinstance(prompt, str) else prompt if isinstance(prompt, list) else []
    if texts and all(isinstance(text, str) for text in texts):
        taken.append("prompt")
    else:
        texts = []
    count = (integer(body.get("n")) or 1) * max(1, len(texts))  # each prompt gets n choices (API reference)
    return Request(
        api=API,
        messages=tuple(Message(Role.USER, (TextPart(text),)) for text in texts),
        model=word(body.get("model")),
        max_tokens=token_count(body.get("max_tokens")),
        stream=body.get("stream") is True,
        n=max(1, count),
        extra=rest(body, *taken),
    )


# -- `Request` -> the body that a completions server expects ---------------------------------------------------------

def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request: its texts in one prompt, so that an answer continues the last one."""
    asking.no_calls(request, API, NO_TOOLS)
    texts = [message.text for message in request.messages]
    # A recorded request with several prompts was read as several messages of the user; it is sent as recorded.
    several = len(texts) > 1 and request.n == len(texts) and all(m.role is Role.USER for m in request.messages)
    prompt: Any = texts if several else asking.prompt_of(request.messages, API)
    body = non_null(model=request.model, prompt=prompt if texts else None, max_tokens=request.max_tokens,
                    n=request.n if request.n != 1 and not several else None)
    return merge(body | non_null(stream=request.stream or None), request.extra)


FORMAT = Format(
    decoder=Decoder,
    paths=PATHS,
    recognises=recognises,
    reads=READS,
    stream_reads=STREAM_READS,
    read_request=read_request,
    encode=encode,
    loses=LOSES,
    encode_request=encode_request,
    asking_loses=asking.PROMPT_LOSES,
    path=lambda request: "/completions",
    home=Home("https://api.openai.com", "/v1", ANY_PATH, "authorization"),
    provider="openai",
    history="prompt",
    no_tools=NO_TOOLS,
    prefills=frozenset(Prefill),  # on any server: the text follows directly after its prompt
    played_in="openai_chat.serving:COMPLETIONS_SERVING",
)
