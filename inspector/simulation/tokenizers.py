"""Tokenizers that work without a network: the extra `tokens`.

Its vocabularies are OpenAI's. For a model of another family, or without the extra, there is none: a tokenizer of
another family would only look exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from inspector.simulation.tokens import Split

FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^(openai/)?(gpt-4o|gpt-4\.|gpt-[5-9]|chatgpt-|o[1-9](-|$)|gpt-oss)"), "o200k_base"),
    (re.compile(r"^(openai/)?gpt-(4|3\.5)(-|$)"), "cl100k_base"),
)
"""Model -> vocabulary, by the table that OpenAI publishes with its tokenizer; the first that fits."""
BLOCK = 50_000
"""Characters that are cut in one call: the tokenizer refuses longer texts than some 200,000 tokens."""


def splitter(model: str | None) -> Split | None:
    """A tokenizer for this model; None where none is known or installed."""
    name = next((name for pattern, name in FAMILIES if pattern.search(model or "")), None)
    return _load(name) if name else None


@cache
def _load(name: str) -> Split | None:
    try:
        encoding: Any = import_module("bpe_openai").get_encoding(name)
    except ImportError:
        return None
    return lambda text: list(_pieces(encoding, text))


def _pieces(encoding: Any, text: str) -> Iterator[str]:
    """The text token by token; bytes that end inside a character wait for the token that completes it."""
    for start in range(0, len(text), BLOCK):
        waiting = b""
        block = text[start : start + BLOCK].encode("utf-8", "replace").decode()  # a lone surrogate is no text
        for token in encoding.decode_tokens_bytes(encoding.encode_ordinary(block)):
            waiting += token
            try:
                piece = waiting.decode()
            except UnicodeDecodeError:
                yield ""
                continue
            waiting = b""
            yield piece
