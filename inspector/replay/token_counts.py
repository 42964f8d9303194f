"""How many output tokens an answer can have, and whether the provider's count of them is possible.

It needs no tokenizer: each token has at least one byte of text, and tokens without any text have a bound of their own.
"""

from __future__ import annotations

from loop_core.values import FINISHED, CallKind, ChatResponse, ReasoningPart, ResponsePart, TextPart, ToolCall

HIDDEN = 1 << 18
"""The most tokens without text (hidden reasoning) of an answer: twice the largest output cap of any model (128,000)."""
UNTOLD = 1 << 15
"""The same bound for an answer that reports no reasoning: some servers neither send thinking nor count it
separately."""


def most_tokens(response: ChatResponse) -> int:
    """An upper bound of a response's output tokens: one for each byte of its text, and its hidden reasoning."""
    return (HIDDEN if _hides(response) else UNTOLD) + text_bytes(response)


def text_bytes(response: ChatResponse) -> int:
    """The size in bytes of the text that tokens are cut from."""
    return sum(len(text_of(part).encode("utf-8", "replace")) for part in response.parts)


def ends_whole(response: ChatResponse) -> bool:
    """Whether the stop reason of an answer says that nothing of it is missing."""
    return response.stop_reason.normalized in FINISHED


def _hides(response: ChatResponse) -> bool:
    """Whether an answer may have tokens without text: it reports some, or it was cut, and thinking may have used
    all."""
    usage = response.usage
    counted = response.other_choices or (usage is not None and usage.reasoning_tokens)
    return not ends_whole(response) or bool(counted) or any(
        not isinstance(part, TextPart) and not (isinstance(part, ToolCall) and part.kind is not CallKind.SERVER)
        for part in response.parts)


def impossible(response: ChatResponse) -> int | None:
    """The output tokens that a provider claims, if they are impossible; None where its count can be."""
    claimed = response.usage.output_tokens if response.usage is not None else None
    if claimed is None or 0 <= claimed <= UNTOLD or UNTOLD < claimed <= most_tokens(response):
        return None  # the first bound spares the bytes of the text, nearly always
    return claimed


def text_of(part: ResponsePart | None) -> str:
    """The text of a part that tokens are cut from; calls that the provider ran and opaque blocks are never cut."""
    if type(part) is TextPart or type(part) is ReasoningPart:
        return part.text
    if type(part) is ToolCall and part.kind is not CallKind.SERVER:
        return part.arguments or ""
    return ""
