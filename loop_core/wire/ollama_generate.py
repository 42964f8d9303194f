"""Ollama's completion endpoint, `/api/generate`: newline-delimited JSON, or one JSON object.

A line itself holds the fields of the message in a line of Ollama's chat. The stop words are the same; `load` and
`unload` answer a request without a prompt. Sources: ollama 0.6.3 _types.py (GenerateResponse), the server's
llm/server.go (DoneReason), api/types.go, docs/api.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from loop_core.errors import EncodeError
from loop_core.values import ChatResponse, Message, OpaquePart, Request, Role, TextPart
from loop_core.wire import asking
from loop_core.wire.body import dump, list_of, mapping_of, merge, non_null, opaque, rest, token_count, word
from loop_core.wire.format import Format, Home
from loop_core.wire.ollama_chat import body_of, lines_of, losses
from loop_core.wire.ollama_chat.decode import LOADS, LOSES, rows
from loop_core.wire.ollama_chat.decode import Decoder as ChatDecoder

API = "ollama_generate"
NO_TOOLS = "a generated answer has neither tools nor results"
PATHS: tuple[re.Pattern[str], ...] = (re.compile(r"/api/generate/?(?=$|[?#])"),)


def recognises(value: Mapping[str, Any], event: str | None = None) -> bool:
    """Whether a JSON value is a line of a generate stream or a whole answer."""
    return not event and isinstance(value.get("response"), str) and isinstance(value.get("done"), bool)


READS = rows("", "response")
STREAM_READS = tuple(row for row in READS if row.fact in ("text", "reasoning"))


# -- Bytes -> `ChatResponse` -----------------------------------------------------------------------------------------

class Decoder(ChatDecoder):
    """The decoder of one generated answer."""

    api: ClassVar[str] = API
    calls_at: ClassVar[tuple[str, ...]] = ("tool_calls",)

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one line."""
        return super().on_event(_as_chat(event), name)

    def on_body(self, body: Any) -> None:
        """Reads a body that is not lines of JSON: an error page, for example."""
        super().on_body(_as_chat(body))


def _as_chat(line: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the line as a line of the chat, with its output in a message. `context` (the ids of all tokens) is
    ignored."""
    return {**line, "message": non_null(role="assistant", content=line.get("response"), thinking=line.get("thinking"),
                                        tool_calls=line.get("tool_calls"))}


# -- `ChatResponse` -> the bytes that Ollama would send for it -------------------------------------------------------
# The objects are those of a chat, with the message's fields moved up to the other fields.

def encode(response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
    """The body: one item when whole, one item per line when streamed, with `chunk` characters of text in each."""
    for what, why in losses(response, stream):
        raise EncodeError(why, api=API, what=what)
    if stream:
        for line in lines_of(response, max(1, chunk)):
            yield dump(_generate_line(line)).encode() + b"\n"
    else:
        yield dump(_generate_line(body_of(response))).encode()


def _generate_line(line: dict[str, Any]) -> dict[str, Any]:
    """The line of a generate stream for this line of a chat."""
    message = line.get("message")
    if message is None:
        return line  # an error
    fields = {"response": message["content"], **{k: message[k] for k in ("thinking", "tool_calls") if k in message}}
    return {**{name: value for name, value in line.items() if name != "message"}, **fields}


# -- Body of a recorded request -> `Request` -------------------------------------------------------------------------
# A system prompt and a prompt take the place of a history.

def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """The `Request` for a recorded body; Ollama streams unless the request says otherwise."""
    cap = token_count(mapping_of(body.get("options")).get("num_predict"))
    return Request(
        api=API,
        messages=tuple(_messages(body)),
        model=word(body.get("model")),
        max_tokens=cap or None,  # -1 is no limit, -2 the rest of the context
        stream=body.get("stream") is not False,
        extra=rest(body, "model", "system", "prompt", "images", "stream", "options.num_predict"),
    )


def _messages(body: Mapping[str, Any]) -> Iterator[Message]:
    if system := word(body.get("system")):
        yield Message(Role.SYSTEM, (TextPart(system),))
    prompt = word(body.get("prompt"))
    images = [OpaquePart("image", dump(image)) for image in list_of(body.get("images"))]
    if prompt or images:
        yield Message(Role.USER, (*([TextPart(prompt)] if prompt else []), *images))


# -- `Request` -> the body that Ollama expects -----------------------------------------------------------------------

def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request."""
    asking.one_choice(request, API)
    asking.no_calls(request, API, NO_TOOLS)
    system = "\n\n".join(message.text for message in request.messages if message.role is Role.SYSTEM)
    others = [message for message in request.messages if message.role is not Role.SYSTEM]
    asking.only_text([message for message in request.messages if message.role is Role.SYSTEM], API)
    images = [_image(part) for message in others for part in message.parts if isinstance(part, OpaquePart)]
    body = non_null(model=request.model, system=system or None,
                    prompt="\n\n".join(message.text for message in others) if others else None, images=images or None)
    body["stream"] = request.stream  # Ollama streams by default
    if request.max_tokens is not None:
        body["options"] = {"num_predict": request.max_tokens}
    return merge(body, request.extra)


def _image(part: OpaquePart) -> str:
    """An image as Ollama takes it, in base64."""
    value = opaque(part, API)
    if not isinstance(value, str):
        raise EncodeError(f"beside its prompt there are images in base64, and no {part.type}", api=API, what="opaque")
    return value


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
    path=lambda request: "/generate",
    home=Home("http://127.0.0.1:11434", "/api", re.compile(r"/api$"), "authorization"),
    provider="ollama",
    history="prompt",
    no_tools=NO_TOOLS,
    stream_type="application/x-ndjson",
    played_in="ollama_chat.serving:GENERATE_SERVING",
    loads=LOADS,
)
