"""A simulated what-if of a response of 3,000 events at half of its tokens, against decoding that response."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

from measure import Line, Report, best, milliseconds
from streams import STREAMS

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import Case, open_case
from inspector.sessions import open_paths
from loop_core import decode
from loop_core.turn.limits import Limits

ROUNDS = 15
URLS = {
    "openai_chat": "https://api.openai.com/v1/chat/completions",
    "openai_responses": "https://api.openai.com/v1/responses",
    "anthropic_messages": "https://api.anthropic.com/v1/messages",
    "gemini_generate": "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent",
    "bedrock_converse": "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream",
    "ollama_chat": "http://localhost:11434/api/chat",
}
SETTINGS = Settings(
    Limits(continuation_max_attempts=100, continuation_max_total_completion_tokens=1_000_000), max_tokens=1_500,
    simulate=True,
)


def case_of(api: str, body: bytes) -> Case:
    """A recording of one exchange."""
    asked = {"messages": [{"role": "user", "content": "x"}], "input": "x", "model": "m"}
    content = {"encoding": "base64", "text": base64.b64encode(body).decode()}
    entry = {"request": {"method": "POST", "url": URLS[api], "headers": [], "postData": {"text": json.dumps(asked)}},
             "response": {"status": 200, "headers": [], "content": content}}
    har = {"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": [entry]}}
    loaded = open_paths(["-"], stdin=json.dumps(har).encode())
    return open_case(loaded)


def report() -> Report:
    """Every format; nothing that was measured before is kept."""
    for api, build in STREAMS.items():
        body = build()
        case = case_of(api, body)
        made = replay(case, SETTINGS)
        simulated = sum(getattr(step.event, "recut", None) is not None for step in made.trace.steps)
        if simulated < 2:
            raise RuntimeError(f"{api}: {simulated} simulated answers")
        took = best({
            "simulated": lambda case=case: replay(replace(case, measures={}), SETTINGS),
            "decode": lambda api=api, body=body: decode(api, body),
        }, ROUNDS)
        yield Line(f"simulate {simulated} answers of {api} ÷ decode it", took["simulated"] / took["decode"], most=1.5,
                   note=milliseconds(took["simulated"], took["decode"]))
