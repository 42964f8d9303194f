"""BotNexus PR 1676: two guards, each load-bearing. A cut call is not run (the gate), and is in no history.

Each is taken away here in turn: the other one still holds, and the test that asks for both fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from loop_core.judge.classify import Judgement
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn import costs, history
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, run
from loop_core.turn.moves import final_history
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.presets import PRESENCE_SIGNALS
from loop_core.turn.state import Event, Send
from loop_core.turn.tools import Toolbox
from loop_core.turn.trace import Trace
from loop_core.values import ChatResponse, Message, OpaquePart, Role, Stop, Tool, ToolCall
from tests.scenes.rows import each_row
from tests.scenes.turns import CUT, GOOD, REQUEST, ScriptedSource, alphabet, answer, call

HELD = '{"path": "held"}'
CASES: dict[str, Event] = {
    "length": answer(Stop.MAX_TOKENS, "text", call(HELD), tokens=100),
    "length, cut": answer(Stop.MAX_TOKENS, "text", call(CUT, closed=False), tokens=100),
    "cut under tool_calls": answer(Stop.TOOL_CALL, "text", call(CUT)),
    "its sibling": answer(Stop.TOOL_CALL, "text", call(HELD), call(CUT, id="c2")),
    "no terminal": answer(Stop.INTERRUPTED, "text", call(HELD)),
    "no terminal, at the cap": answer(Stop.INTERRUPTED, "text", call(HELD), tokens=100),
    "content filter": answer(Stop.SAFETY_BLOCKED, "text", call(HELD)),
    "pause": answer(Stop.PAUSED, "text", call(HELD), OpaquePart("block", "{}")),
    "unknown word": answer(Stop.UNKNOWN, "text", call(HELD)),
    "error": answer(Stop.ERROR, "text", call(HELD)),
    "malformed": answer(Stop.TOOL_CALL, "text", call("nonsense")),
}
AFTERWARDS = [answer(Stop.END_TURN, "well"), answer(Stop.END_TURN, "well")]


def play(case: str, policy: Policy = STRICT) -> tuple[list[str | None], list[str | None]]:
    """What ran, and which calls any request or the history after the turn holds, by their arguments."""
    ran: list[str | None] = []
    box = Toolbox({"write": lambda arguments: ran.append(str(arguments)) or "ok"})

    class Live(ScriptedSource):
        run_tools = staticmethod(box.run)

    source = Live([CASES[case], *AFTERWARDS])
    trace = run("t", REQUEST, source, Plan(Limits(), policy))
    return ran, stored_arguments(trace)


def stored_arguments(trace: Trace) -> list[str | None]:
    found: list[str | None] = []
    for step in trace.steps:
        sent = [message for effect in step.effects if isinstance(effect, Send) for message in effect.new_messages]
        found += [made.arguments for message in (*step.turn.history, *sent) for made in message.tool_calls]
    return found + [made.arguments for message in final_history(trace.steps[-1].turn) for made in message.tool_calls]


def open_gate(
    calls: Sequence[ToolCall], judged: Judgement, tools: Sequence[Tool] = (), choice: str | None = None
) -> tuple[Verdict, ...]:
    """A gate that lets everything pass."""
    return tuple(Verdict(each, Admission.READY, "open", "") for each in calls)


def keep_all(response: ChatResponse, *_: Any, **__: Any) -> Message:
    """A projection that keeps everything."""
    return Message(Role.ASSISTANT, response.parts)


BELIEVES_PRESENCE = replace(STRICT, name="presence", signals=PRESENCE_SIGNALS)


def without_the_gate(monkeypatch: pytest.MonkeyPatch) -> Policy:
    """Dispatch on presence alone, as before BotNexus PR 1676's fix."""
    monkeypatch.setattr(costs, "admit_all", open_gate)
    return BELIEVES_PRESENCE


def without_the_projection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "assistant_message", keep_all)
    monkeypatch.setattr(history, "echo_message", lambda *given: (keep_all(*given), ""))


@each_row("case", CASES)
def test_with_both_guards_nothing_runs_and_nothing_is_kept(case: str) -> None:
    assert play(case) == ([], [])


@pytest.mark.parametrize("case", CASES)
def test_without_the_projection_still_nothing_runs(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_the_projection(monkeypatch)
    ran, found = play(case)
    assert ran == []
    assert found, "the guard was really taken away: the test above fails"


@pytest.mark.parametrize("case", CASES)
def test_without_the_gate_still_nothing_is_kept(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran, found = play(case, without_the_gate(monkeypatch))
    assert found == []
    errs = case in ("error",)
    assert ran or errs, "the guard was really taken away: the test above fails"


@pytest.mark.parametrize("case", CASES)
def test_the_gate_itself_is_double(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts alone that release everything, or signals alone that go by presence, do not run a held call."""
    assert play(case, BELIEVES_PRESENCE)[0] == []
    monkeypatch.setattr(costs, "admit_all", open_gate)
    ran, _ = play(case)
    assert ran == []


def test_a_genuine_call_runs_and_is_kept() -> None:
    """BotNexus PR 1676, `CompleteToolUseTurn_IsDispatched`: no regression of legitimate execution."""
    CASES["genuine"] = alphabet()["call"]
    try:
        ran, found = play("genuine")
    finally:
        del CASES["genuine"]
    assert ran == ["{'path': 'a.txt'}"]
    assert GOOD in found
