"""Legacy completions, whole or streamed -> `ChatResponse`.

A choice holds its text where a chat completion holds a message or a delta. Everything else is as in Chat Completions,
whose decoder reads it: reasons, usage, filters, errors, several choices. Mistral's `/fim/completions` and Portkey's
`/prompts/ID/completions` answer with messages, which are read as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from loop_core.values import ChatResponse
from loop_core.wire.base import ForeignWord, StopRow
from loop_core.wire.openai_chat.decode import Decoder as ChatDecoder
from loop_core.wire.openai_completions.table import API, STOP_REASONS


class Decoder(ChatDecoder):
    """One text completion being read."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = STOP_REASONS
    foreign_reasons: ClassVar[Mapping[str, ForeignWord]] = {}

    def on_event(self, event: Any, name: str | None, start: int, end: int) -> None:
        """One chunk."""
        super().on_event(_as_chat(event, "delta"), name, start, end)

    def on_body(self, body: Any) -> None:
        """A whole completion, or an error."""
        super().on_body(_as_chat(body, "message"))

    def build(self) -> ChatResponse:
        """The response of the first choice."""
        return replace(super().build(), api=API)


def _as_chat(body: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """The body with the text of each choice in a message; a choice that holds a message already keeps it."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return body
    said = [{**choice, field: {"content": choice["text"]}}
            if isinstance(choice, dict) and isinstance(choice.get("text"), str) and field not in choice else choice
            for choice in choices]
    return {**body, "choices": said}
