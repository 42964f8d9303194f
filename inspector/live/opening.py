"""What a live turn begins with: a prompt, a file of messages, or a whole request body of the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.config import bounds
from loop_core.errors import CallerError
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import wire


def request_of(api: str, model: str, prompt: str | None, messages: Any | None, stream: bool) -> Request:
    """The first request of a turn; `messages` is the JSON of a file.

    Raises:
        CallerError: there is nothing to ask, or the file holds no messages.
    """
    if prompt is not None:
        read = Request(api, (Message(Role.USER, (TextPart(prompt),)),))
    elif isinstance(messages, Mapping):
        read = wire(api).read_request(messages)
        if not any(message.parts for message in read.messages):
            raise CallerError(f"--messages: no request body of {api}: expected one with {wire(api).history}")
    else:
        read = _history(api, messages)
    return replace(read, model=model, stream=stream)


def _history(api: str, messages: Any) -> Request:
    """A list of messages, in the API's own form or as chat messages."""
    if not isinstance(messages, list) or not messages:
        raise CallerError("--messages: expected a JSON list of messages, or a request body")
    own = wire(api).read_request({wire(api).history: messages})
    if own.messages and all(message.parts for message in own.messages):
        return own
    chat = wire("openai_chat").read_request({"messages": messages})
    if not chat.messages or not all(message.parts for message in chat.messages):
        raise CallerError(f"--messages: a message without content, or in no form that {api} or a chat has")
    return replace(chat, api=api)


def json_file(path: str, option: str) -> Any:
    """The JSON of a file.

    Raises:
        CallerError: it cannot be read, or is no JSON.
    """
    try:
        bounds.check(path)
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as why:
        raise CallerError(f"{option} {path}: {why.strerror or why}") from None
    except UnicodeDecodeError as why:
        raise CallerError(f"{option} {path}: byte {why.start}: expected UTF-8") from None
    except json.JSONDecodeError as why:
        raise CallerError(f"{option} {path}: line {why.lineno}, column {why.colno}: {why.msg}") from None
