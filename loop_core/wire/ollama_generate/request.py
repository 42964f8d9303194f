"""Body of a recorded generate request -> Request: a system prompt and a prompt instead of a history.

Further down: request -> the body that Ollama's generate expects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import Message, OpaquePart, Request, Role, TextPart
from loop_core.wire.body import dump, integer, list_of, mapping_of, merge, non_null, one_choice, opaque, rest, word
from loop_core.wire.ollama_generate.table import API


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What a recorded request asks for; a request that does not say so is streamed."""
    cap = integer(mapping_of(body.get("options")).get("num_predict"))
    return Request(
        api=API,
        messages=tuple(_messages(body)),
        model=word(body.get("model")),
        max_tokens=cap if cap is not None and cap > 0 else None,  # -1 is no limit, -2 the rest of the context
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


# -- Request -> the body that Ollama's generate expects --------------------------------------------------------------

ASKING_LOSES: Mapping[str, str] = {
    "message.role": "a prompt is one text",
    "message.grouping": "a prompt is one text",
    "text.grouping": "a prompt is one text",
    "reasoning": "a prompt is one text",
    "previous_id": "nothing is kept on the provider's side",
    "continuation_token": "as previous_id",
    "background": "as previous_id",
}


def path(request: Request) -> str:
    """Where the request goes, below `/api`."""
    return "/generate"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request.

    Raises:
        EncodeError: it holds what the format cannot carry.
    """
    one_choice(request, API)
    if request.tools or any(message.tool_calls or message.results for message in request.messages):
        raise EncodeError("a generated answer has neither tools nor results", api=API, what="tools")
    system = "\n\n".join(message.text for message in request.messages if message.role is Role.SYSTEM)
    others = [message for message in request.messages if message.role is not Role.SYSTEM]
    images = [opaque(part, API) for message in others for part in message.parts if isinstance(part, OpaquePart)]
    body = non_null(model=request.model, system=system or None,
                    prompt="\n\n".join(message.text for message in others) if others else None, images=images or None)
    body["stream"] = request.stream  # it streams where nothing is said
    if request.max_tokens is not None:
        body["options"] = {"num_predict": request.max_tokens}
    return merge(body, request.extra)
