"""What our continuations say to a model, and the marks that they put around the words that are to be quoted.

Below the seams, because none of it may reach the merged text, also where a model repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence

HINT_POINTS = (
    "Previous response was truncated by token limit.",
    "Continue exactly from where you left off.",
    "If you intended a tool call, emit one complete tool call payload only.",
    "Do not repeat already-sent text.",
)
"""The continuation hint of seed 000, its four points in order."""

MARKS = ("last", "last_words")
"""Names of the tags around the words to quote; the first that the conversation does not hold is used."""

AGAIN = "Your last message did not begin so. Add no greeting, apology or remark, no quotation marks and no code fence."
"""What is said before the words are asked for once more."""

EMPTY = "Your previous response was empty: it held neither text nor a tool call."
"""What is said before an answer is asked for once more."""

_BETWEEN = "Begin by repeating exactly the characters between "


def mark_for(texts: Sequence[str]) -> str:
    """The name of the tags that none of these texts holds; the last one where each is in some text."""
    return next((mark for mark in MARKS if not any(holds(text, mark) for text in texts)), MARKS[-1])


def holds(text: str, mark: str) -> bool:
    """Whether a text has tags of this name."""
    return f"<{mark}>" in text or f"</{mark}>" in text


def asks(mark: str) -> str:
    """The point that asks for words back, up to the words; `</mark>` follows them."""
    return f"{_BETWEEN}<{mark}> and </{mark}>: <{mark}>"


def asks_again(text: str) -> bool:
    """Whether a message is a hint of ours that asks for the words once more."""
    return text.startswith(HINT_POINTS[0]) and f"\n{AGAIN}\n" in text


def prompt_end(text: str, mark: str) -> int:
    """Where the points of our own prompt end that a text begins with; 0 where it begins with none."""
    points = (EMPTY, *HINT_POINTS, AGAIN, asks(mark).removesuffix(f"<{mark}>").rstrip())
    end = 0
    while True:
        rest = text[end:].lstrip()
        point = next((point for point in points if rest.startswith(point)), None)
        if point is None:
            return end
        end = len(text) - len(rest) + len(point)
