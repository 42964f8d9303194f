"""Masks secrets in received bytes with asterisks, before the bytes are decoded, recorded or shown. Pure.

So a key that a server repeats never appears. A mask is as long as the secret, so byte offsets stay true.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, quote_plus

from loop_core.values import ChatResponse, OpaquePart, ReasoningPart, ResponsePart, TextPart, ToolCall

SHORTEST = 8
"""The least length in characters of a secret that is masked in bodies. A shorter one may be an ordinary word, and is
hidden in headers and URLs only."""

Redact = Callable[[bytes], bytes]
"""A function that masks everything else that looks like a credential and keeps the length."""


class Mask:
    """Replaces secrets in a stream of bytes by as many asterisks, wherever the chunks are cut."""

    __slots__ = ("_held", "_in_texts", "_redact", "_secrets")

    def __init__(self, secrets: Iterable[str], redact: Redact | None = None, *, halves: bool = False) -> None:
        """`redact` masks further credentials. With `halves`, half of a secret is masked in fed pieces too; in a
        complete text it always is."""
        self._redact = redact
        long = [secret for secret in secrets if len(secret) >= SHORTEST]
        packed = [form for secret in long for form in _base64_forms(secret)]
        # A continuation may begin in the middle of a key, and then one of the two texts holds at least half of it. In
        # bytes a half stays, because a frame with a wrong checksum is lost together with the text around the half.
        self._in_texts = _forms((*long, *packed, *(half for secret in long if len(secret) >= 3 * SHORTEST
                                          for half in (secret[: len(secret) // 2], secret[len(secret) // 2 :]))))
        self._secrets = self._in_texts if halves else _forms((*long, *packed))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The bytes so far with known secrets masked; a tail that may begin a secret is kept for the next call."""
        if self._secrets:
            data = self._held + data
            for secret in self._secrets:
                data = data.replace(secret, b"*" * len(secret))
            keep = max(_prefix_length(data, secret) for secret in self._secrets)
            data, self._held = data[: len(data) - keep], data[len(data) - keep :]
        return data

    def mask_credentials(self, data: bytes, before: bytes) -> bytes:
        r"""The same bytes with everything else masked that looks like a credential; `before` are the bytes before them.

        The text before a credential helps to recognise it: if `\nAIza…` is split after the backslash, the second
        piece begins with the `n` of the escape, and `nAIza…` alone looks like a longer word.
        """
        return data if self._redact is None else self._redact(before + data)[len(before) :]

    def flush(self) -> bytes:
        """Returns the bytes that were held back; asterisks if they are most of a secret that the end of the stream
        cut."""
        held, self._held = self._held, b""
        most = any(len(held) * 2 > len(secret) and secret.startswith(held) for secret in self._secrets)
        return b"*" * len(held) if most else held  # a few characters may match by chance

    def text(self, value: str) -> str:
        """A complete text with its secrets masked."""
        for secret in self._in_texts:
            value = value.replace(secret.decode(), "*" * len(secret))
        if self._redact is None:
            return value
        return self._redact(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def response(self, value: ChatResponse) -> ChatResponse:
        """A response with its texts masked: a secret that arrived in several frames is complete only here."""
        if not self._secrets and self._redact is None:
            return value
        error = value.error
        return replace(
            value,
            parts=tuple(self._part(part) for part in value.parts),
            refusal=self._optional_text(value.refusal),
            error=None if error is None else error._replace(message=self.text(error.message)),
            native={name: self.text(word) for name, word in value.native.items()},
            findings=tuple(found._replace(message=self.text(found.message)) for found in value.findings),
        )

    def _part(self, part: ResponsePart) -> ResponsePart:
        if type(part) is OpaquePart:
            return part._replace(json=self.text(part.json))
        if type(part) is ToolCall:
            return part._replace(name=self.text(part.name), arguments=self._optional_text(part.arguments),
                                 other_arguments=self._optional_text(part.other_arguments))
        if type(part) is ReasoningPart:
            return part._replace(text=self.text(part.text), json=self._optional_text(part.json))
        return part._replace(text=self.text(part.text)) if type(part) is TextPart else part

    def _optional_text(self, value: str | None) -> str | None:
        return None if value is None else self.text(value)

    def json(self, value: Any) -> Any:
        """A JSON value with all of its texts masked."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): self.json(item) for name, item in value.items()}
        return [self.json(item) for item in value] if isinstance(value, (list, tuple)) else value


def _forms(secrets: Iterable[str]) -> list[bytes]:
    """The spellings of secrets, longest first: masking a short one inside a long one first would leave the rest
    visible."""
    spelled = {form for secret in secrets for form in _spellings(secret)}
    return [form.encode() for form in sorted(spelled, key=len, reverse=True)]


def _spellings(secret: str) -> tuple[str, ...]:
    """A secret as it is written in plain text, in JSON and in a URL."""
    addresses = (quote(secret), quote(secret, safe=""), quote_plus(secret))
    # Some JSON encoders (PHP's) escape slashes.
    return (secret, json.dumps(secret)[1:-1], secret.replace("/", "\\/"), *addresses)


def _base64_forms(secret: str) -> Iterator[str]:
    """Yields the base64 forms of a secret inside a text, such as a key after a user's name: three spellings, by the
    number of bytes before it. Characters that also hold bits of neighbouring bytes are left out."""
    data = secret.encode()
    for before in range(3):
        for encoded in (b64encode, urlsafe_b64encode):
            yield encoded(bytes(before) + data).decode()[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


def _prefix_length(data: bytes, secret: bytes) -> int:
    """How many of the last bytes are the beginning of the secret."""
    at = data.find(secret[:1], max(0, len(data) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(data[at:]):
            return len(data) - at
        at = data.find(secret[:1], at + 1)
    return 0
