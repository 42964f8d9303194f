"""The ids of requests: made from what was asked, so that a recording of the same requests has the same ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from inspector.provider.reply import Reply
from loop_core.wire.body import compact, read_object
from loop_core.wire.servers import CHAT, CONVERSE, MESSAGES, RESPONSES


class Header(NamedTuple):
    """The header in which a provider names a request."""

    name: str
    spell: Callable[[str], str]
    """32 hexadecimal digits -> the id."""


HEADERS: Mapping[str, Header] = {
    CHAT: Header("x-request-id", lambda digits: f"req_{digits}"),
    RESPONSES: Header("x-request-id", lambda digits: f"req_{digits}"),
    MESSAGES: Header("request-id", lambda digits: f"req_01{digits[:22]}"),
    CONVERSE: Header("x-amzn-requestid", lambda digits: "-".join(
        (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))),
}
"""Format -> its header; Google's and Ollama's servers send none."""


def identified(api: str, reply: Reply, *asked: object) -> Reply:
    """The reply with the id of its request; Anthropic's errors hold it too."""
    header = HEADERS.get(api)
    if header is None:
        return reply
    ident = header.spell(hashlib.sha256(json.dumps([str(each) for each in asked]).encode()).hexdigest()[:32])
    made = replace(reply, headers={**reply.headers, header.name: ident})
    if api != MESSAGES or reply.status < 400:
        return made
    body = read_object(b"".join(reply.frames).decode())
    return made if body is None else replace(made, frames=(compact({**body, "request_id": ident}).encode(),))
