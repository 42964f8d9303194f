"""Body of a recorded legacy completion -> Request: a prompt instead of a history.

Reads what a recording holds and never complains; a prompt of token ids is kept beside the messages as it was sent.

Further down: request -> the body that a completions server expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loop_core.errors import EncodeError
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire.body import integer, merge, non_null, rest, word
from loop_core.wire.openai_completions.table import API


def read_request(body: Mapping[str, Any], url: str = "") -> Request:
    """What a recorded request asks for; of several prompts each is a message of the user."""
    prompt, taken = body.get("prompt"), ["model", "max_tokens", "stream", "n"]
    texts = [prompt] if isinstance(prompt, str) else prompt if isinstance(prompt, list) else []
    if texts and all(isinstance(text, str) for text in texts):
        taken.append("prompt")
    else:
        texts = []
    count = (integer(body.get("n")) or 1) * max(1, len(texts))
    return Request(
        api=API,
        messages=tuple(Message(Role.USER, (TextPart(text),)) for text in texts),
        model=word(body.get("model")),
        max_tokens=integer(body.get("max_tokens")),
        stream=body.get("stream") is True,
        n=max(1, count),
        extra=rest(body, *taken),
    )


# -- Request -> the body that a completions server expects -----------------------------------------------------------

ASKING_LOSES: Mapping[str, str] = {
    "message.role": "a prompt is one text: it says who speaks only where its own words do",
    "message.grouping": "as message.role",
    "text.grouping": "as message.role",
    "reasoning": "as message.role",
    "previous_id": "nothing is kept on the provider's side",
    "continuation_token": "as previous_id",
    "background": "as previous_id",
}


def path(request: Request) -> str:
    """Where the request goes, below `/v1`."""
    return "/completions"


def encode_request(request: Request) -> dict[str, Any]:
    """The body of the request: its texts one after the other, so that an answer continues the last one.

    Raises:
        EncodeError: it holds what the format cannot carry.
    """
    if request.tools or any(message.tool_calls or message.results for message in request.messages):
        raise EncodeError("a completion has neither tools nor calls", api=API, what="tools")
    texts = [message.text for message in request.messages]
    several = len(texts) > 1 and request.n == len(texts) and all(m.role is Role.USER for m in request.messages)
    # The text of an answer so far stands right behind its prompt: the model goes on with it.
    joined = "".join(message.text if message.role is Role.ASSISTANT else f"\n\n{message.text}"
                     for message in request.messages).removeprefix("\n\n")
    prompt: Any = texts if several else joined
    body = non_null(model=request.model, prompt=prompt if texts else None, max_tokens=request.max_tokens,
                    n=request.n if request.n != 1 and not several else None)
    if request.stream:
        body["stream"] = True
    return merge(body, request.extra)
