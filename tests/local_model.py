"""Predictions of smaller budgets, from one long recording of a real model, held against that model. No tests here.

A server that speaks the OpenAI or the Anthropic format, named by LOOP_INSPECTOR_MODEL_URL, is asked at temperature 0:
once with the largest budget, then with each smaller one. What was recorded first predicts the others.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.sessions import open_paths
from loop_core.turn.limits import Limits
from loop_core.turn.state import ProviderResponse
from loop_core.values import Stop

URL = os.environ.get("LOOP_INSPECTOR_MODEL_URL", "")
PROMPTS = (
    "Write a short story about a lighthouse keeper.",
    "Explain how a bicycle works, step by step.",
    "List the planets and say one thing about each.",
)
MIXED: Mapping[str, str] = {
    "English": PROMPTS[0],
    "French": "Écris une courte histoire en français sur un élève très âgé à l'école.",
    "Chinese": "请用中文写一个关于猫和狗的故事。",
    "emoji": "Reply only with emojis: list twenty different emojis of animals and food 🐶🍕🎉🚀.",
    "code": "Write a JavaScript function that prints 你好 and 🎉 ten times, with comments in French.",
}
"""Prompts whose answers hold characters of one byte and of several."""
LONG = 240
"""The budget of the recording, in tokens."""
BUDGETS = (1, 2, 5, 11, 24, 48, 77, 120, 170, 239)
FORMATS: Mapping[str, tuple[str, str, str]] = {
    "openai_chat": ("/v1/chat/completions", "messages", "max_tokens"),
    "anthropic_messages": ("/v1/messages", "messages", "max_tokens"),
    "openai_responses": ("/v1/responses", "input", "max_output_tokens"),
}
"""Format -> path, the name of the history, the name of the cap."""
SETTINGS = Limits(continuation_max_attempts=1_000, continuation_max_total_completion_tokens=1_000_000)


@dataclass(frozen=True)
class First:
    """The first segment of an answer: why it stopped, and its text."""

    stop: Stop
    text: str


@dataclass(frozen=True)
class Comparison:
    """One prediction beside what the model did."""

    budget: int
    basis: str
    predicted: First
    seen: First
    apart: tuple[int, int] | None = None
    """Where it is ESTIMATED: the least and the most characters."""

    @property
    def same(self) -> bool:
        return self.predicted == self.seen

    @property
    def holds(self) -> bool:
        """Whether what is said of it is so: the same answer where it is exact, else one within the range."""
        if self.apart is None:
            return self.same
        return self.predicted.stop == self.seen.stop and self.apart[0] <= len(self.seen.text) <= self.apart[1]


def unreachable(url: str) -> str:
    """Why there is no model to ask; empty where there is one."""
    if not url:
        return "no model (LOOP_INSPECTOR_MODEL_URL names a server that speaks the OpenAI or the Anthropic format)"
    try:
        with urllib.request.urlopen(f"{url}/v1/models", timeout=5):
            return ""
    except (urllib.error.URLError, OSError) as why:
        return f"no model at {url}: {why}"


def ask(url: str, api: str, prompt: str, cap: int, *, stream: bool = True) -> dict[str, Any]:
    """One exchange with the model, as a logger would write it down."""
    path, history, limit = FORMATS[api]
    body = {history: [{"role": "user", "content": prompt}], limit: cap, "temperature": 0, "stream": stream}
    if api == "openai_chat" and stream:
        body["stream_options"] = {"include_usage": True}
    sent = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(sent, timeout=300) as answer:
        said = answer.read().decode()
    return {"request": {"method": "POST", "url": url + path, "headers": {}, "body": body},
            "response": {"status": 200, "headers": {}, "body": said if stream else json.loads(said)}}


def case_of(exchange: dict[str, Any]):
    """The exchange as it is opened by the program."""
    return open_case(open_paths(["-"], stdin=json.dumps(exchange).encode() + b"\n"))


def first(answer: ProviderResponse) -> First:
    return First(answer.judgement.stop.normalized, answer.response.text or "")


def predict(case: Any, budget: int) -> tuple[First, str, str]:
    """The first segment at another budget, by what, and how the turn would end."""
    answer, terminal = _first_at(case, budget)
    return first(answer), answer.recut.basis if answer.recut else "recorded", terminal


def _first_at(case: Any, budget: int) -> tuple[ProviderResponse, str]:
    made = replay(case, Settings(SETTINGS, max_tokens=budget, simulate=True))
    answer = next(step.event for step in made.trace.steps if isinstance(step.event, ProviderResponse))
    return answer, made.trace.steps[made.turns[0].deciding_step].turn.terminal or ""


def hold(
    url: str, api: str, prompt: str, *, long: int = LONG, stream: bool = True, budgets: Sequence[int] = BUDGETS
) -> list[Comparison]:
    """Every smaller budget: what is predicted from one long recording, and what the model does."""
    case = case_of(ask(url, api, prompt, long, stream=stream))
    found = []
    for budget in budgets:
        told, _ = _first_at(case, budget)
        seen = case_of(ask(url, api, prompt, budget, stream=stream))
        recut = told.recut
        found.append(Comparison(
            budget, recut.basis if recut else "recorded", first(told),
            First(seen.judgements[0].stop.normalized, seen.recording.exchanges[0].response.text or ""),
            recut.apart if recut else None))
    return found
