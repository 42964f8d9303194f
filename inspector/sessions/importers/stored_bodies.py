"""The bodies of recorded pairs: what cassettes, SDKs and batches store around the text that was sent."""

from __future__ import annotations

import binascii
from typing import Any

from inspector.sessions.importers import wiremock
from inspector.sessions.importers.records import DUMP
from inspector.sessions.transcripts.member_values import object_of

Path = tuple[str | int, ...]
"""The place of a value in a record."""

PACKED = ("base64_string", "b64", wiremock.PACKED)
"""The members whose text is base64: of Ruby's VCR with `preserve_exact_body_bytes`, of ReqLLM, of WireMock."""
_AROUND = frozenset({"string", "encoding", "decoded", *PACKED})


def cassette(value: Any, path: Path) -> tuple[Any, Path]:
    """The text inside `{"string": …}`, as cassettes write bodies, or the JSON of an SDK's object."""
    if isinstance(value, dict):
        for key in ("string", *PACKED):
            if isinstance(value.get(key), str) and set(value) <= _AROUND:
                return value[key], (*path, key)
        if DUMP in value and len(value) == 2:
            return value[DUMP], (*path, DUMP)
    return value, path


def batch_line(value: Any, path: Path) -> tuple[Any, Path]:
    """The message inside a line of an Anthropic batch's results."""
    if isinstance(value, dict) and value.get("type") in ("succeeded", "errored"):
        for key in ("message", "error"):
            if key in value:
                return value[key], (*path, key)
    return value, path


def unpack_pieces(text: str) -> bytes:
    """The bytes of a stream whose pieces were stored in base64, one in each line."""
    return b"".join(map(binascii.a2b_base64, text.split("\n")))


def list_around(value: Any) -> str | None:
    """The member that holds such values in an answer, if a value is a choice or a candidate alone."""
    members = object_of(value)
    if members.keys() >= {"message", "finish_reason"}:
        return "choices"
    return "candidates" if "finishReason" in members and "parts" in object_of(members.get("content")) else None
