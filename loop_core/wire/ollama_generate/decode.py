"""Ollama generate bytes -> ChatResponse: a line holds what a line of Ollama's chat holds in its message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from loop_core.values import ChatResponse
from loop_core.wire.base import StopRow
from loop_core.wire.ollama_chat.decode import Decoder as ChatDecoder
from loop_core.wire.ollama_generate.table import API, STOP_REASONS


class Decoder(ChatDecoder):
    """One generated answer being read."""

    api: ClassVar[str] = API
    stop_reasons: ClassVar[Mapping[str, StopRow]] = STOP_REASONS
    calls_at: ClassVar[tuple[str, ...]] = ("tool_calls",)

    def on_event(self, event: Any, name: str | None, start: int, end: int) -> None:
        """One line."""
        super().on_event(_as_chat(event), name, start, end)

    def on_body(self, body: Any) -> None:
        """A body that no line could be made of: an error page that is JSON after all."""
        super().on_body(_as_chat(body))

    def build(self) -> ChatResponse:
        """The response from what was read."""
        return replace(super().build(), api=API)


def _as_chat(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line with its output in a message. `context` (the ids of all tokens) is nothing that anybody reads."""
    message = {"role": "assistant", "content": line.get("response"), "thinking": line.get("thinking"),
               "tool_calls": line.get("tool_calls")}
    return {**line, "message": {name: value for name, value in message.items() if value is not None}}
