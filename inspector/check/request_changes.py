"""Compares requests: what an agent's history changed, lost or repeated. Pure functions for the rules."""

from __future__ import annotations

from typing import Any

from inspector.report.facts import TurnFacts, View
from loop_core.formats import FORMATS
from loop_core.values import Role
from loop_core.wire import wire

LISTS = ("system", "tools", "messages", "contents", "input")
"""The members of a request that a provider's cache goes by, in the order in which they are read."""
OF_HISTORY = frozenset({"pairs", "first_role", "alternation", "undeclared", "empty_text", "last_blank"})
"""Rules of the scripted provider (`Demands.rules`) that speak of the history and of nothing else."""
OWN_SERVERS = frozenset({"openai", "azure_openai", "anthropic", "gemini", "vertex", "bedrock", "ollama"})
"""Profiles of the servers that made the formats: what they took, they do not refuse."""
TELLING = 40
"""Characters that two texts must share before that is no accident."""


def changed_at(before: Any, after: Any) -> str | None:
    """The first part of a request that differs when the next request sends it again; None if none does."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return None
    for name in LISTS:
        old, new = before.get(name), after.get(name)
        if name in ("system", "tools"):
            if old is not None and _plain(old) != _plain(new):
                return name
        elif isinstance(old, list) and isinstance(new, list):
            differs = (at for at, item in enumerate(old) if at >= len(new) or _plain(item) != _plain(new[at]))
            first = next(differs, None)
            # The last message before may carry the mark of the cache, or be a prefill that is sent whole now.
            if first is not None and first < len(old) - 1:
                return f"{name}[{first}]"
    return None


def _plain(value: Any) -> Any:
    """A value without the marks that say where the cache ends: they move with every request."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name not in ("cache_control", "cachePoint")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def refusal(api: str, body: Any) -> str | None:
    """Why a strict server of this format refuses the history of a request; None if it does not."""
    if not isinstance(body, dict) or api not in FORMATS:
        return None
    for rule in wire(api).serving.demands.rules:
        if rule.name not in OF_HISTORY:
            continue
        try:
            error = rule.find(body)
        except (TypeError, ValueError, AttributeError, LookupError):
            continue  # a body of an unexpected shape is another rule's affair
        if error is not None:
            return " ".join(str(error).split())
    return None


def begins_anew(first: str, second: str) -> bool:
    """Whether a second text repeats the beginning of the first instead of continuing its end."""
    start = second.lstrip()[:TELLING]
    return len(start) == TELLING and first.lstrip().startswith(start) and not first.rstrip().endswith(start)


def text_after(view: View, turn: TurnFacts) -> str | None:
    """The text of the model in a later request whose history begins like the turn's own; None if it has none."""
    own = [link.index for link in turn.run.record.links]
    requests = [view.responses[index].exchange.request for index in own]
    opening = requests[0] if requests else None
    if opening is None or not opening.messages or opening.previous_id:
        return None
    begins, end = opening.messages, len(opening.messages)
    asks_on = {message.text for request in requests[1:] if request is not None for message in request.messages[end:]
               if message.role is Role.USER}
    later = (view.responses[link.index].exchange for other in view.turns if other is not turn
             for link in other.run.record.links if link.index > own[-1])
    for exchange in later:
        request = exchange.request
        if request is None or request.messages[:end] != begins:
            continue
        answer: list[str] = []
        for message in request.messages[end:]:
            if message.role is Role.USER and answer and message.text not in asks_on:
                break
            if message.role is Role.ASSISTANT:
                answer.append(message.text)
        return "\n".join(answer)
    return None


def is_lost(text: str, kept_text: str) -> bool:
    """Whether a text of some length is missing from the answer in the history."""
    begins = text.strip()[:TELLING]
    return len(begins) == TELLING and bool(kept_text.strip()) and begins not in kept_text


def doubled_text(overlap: str, kept_text: str) -> str | None:
    """The text that two segments share, if the history holds it twice in a row; None if it does not."""
    text = overlap.strip()
    if len(text) < TELLING // 2:
        return None
    at = kept_text.find(text)
    again = kept_text.find(text, at + len(text)) if at >= 0 else -1
    return text[:60] if again >= 0 and not kept_text[at + len(text) : again].strip() else None
