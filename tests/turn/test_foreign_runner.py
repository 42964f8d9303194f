"""Somebody else's runner, which runs whatever the effect lists: no policy and no hazard makes it run a held call."""

from __future__ import annotations

from loop_core.judge.gate import Admission
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import Event, RunTools, ToolResults, Turn
from loop_core.values import CallKind, Message, Stop, ToolCall, ToolResultPart
from tests.scenes.rows import each_row, share
from tests.scenes.turns import BAD, CUT, GOOD, RAW, ScriptedSource, answer, call, dispatches, drive, last

WORDS = [word for word in Stop if word in RAW or word is Stop.INTERRUPTED]
REFUSED = call(BAD, id="c2")
HELD: dict[str, ToolCall] = {
    "cut in a string": call(CUT, id="c2"),
    "cut after a number": call('{"path": "a", "lines": 1', id="c2"),
    "cut between": call('{"path": "a",', id="c2"),
    "never closed": call(id="c2", closed=False),
    "no JSON": call("path=a.txt", id="c2"),
    "a key twice": call('{"path": "a", "path": "b"}', id="c2"),
    "more than one value": call(f"{GOOD}{GOOD}", id="c2"),
    "no arguments": call("", id="c2"),
    "none at all": call(None, id="c2"),
    "two texts": call(id="c2", other_arguments="{}"),
    "phantom": ToolCall(None, "", ""),
    "cut, of a call without an id": call(CUT, id=None),
    "free-form, never closed": call("ls", "shell", "c2", closed=False, kind=CallKind.CUSTOM),
}


class Foreign(ScriptedSource):
    """Runs every call that the effect lists, without a look at what the gate said of it."""

    def __init__(self, *events: Event) -> None:
        super().__init__(events)
        self.calls: list[ToolCall] = []
        self.history: tuple[Message, ...] = ()

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        self.calls += [verdict.call for verdict in effect.released]
        return ToolResults(tuple(ToolResultPart(v.call.id, v.call.name, "ran") for v in effect.released))


def run_foreign(policy: str, word: Stop, *calls: ToolCall) -> Foreign:
    source = Foreign(answer(word, "text", *calls), answer(Stop.END_TURN, "end"))
    source.history = last(drive([], policy=POLICIES[policy], source=source)).history
    return source


@each_row("policy", sorted(POLICIES))
@each_row("hazard", sorted(HELD))
def test_no_held_call_runs(policy: str, hazard: str) -> None:
    for word in share(WORDS, policy + hazard):
        for calls in ((HELD[hazard],), (call(), HELD[hazard]), (HELD[hazard], call())):
            found = run_foreign(policy, word, *calls).calls
            assert HELD[hazard] not in found, (word, calls)
            if hazard != "phantom":
                assert not found, (word, calls)  # a batch of which one is held is one unfinished batch


@each_row("policy", sorted(POLICIES))
def test_no_whole_call_runs_under_a_word_that_does_not_authorise_it(policy: str) -> None:
    for word in WORDS:
        found = run_foreign(policy, word, call()).calls
        assert word in (Stop.TOOL_CALL, Stop.END_TURN) or not found, word
    assert run_foreign(policy, Stop.TOOL_CALL, call()).calls == [call()]


@each_row("policy", sorted(POLICIES))
def test_a_refused_call_does_not_run_and_is_answered_with_its_error(policy: str) -> None:
    for calls in ((call(), REFUSED), (REFUSED, call())):
        source = run_foreign(policy, Stop.TOOL_CALL, *calls)
        assert source.calls == [call()]
        (results,) = [message.results for message in source.history if message.results]
        assert [(part.call_id, part.text == "ran", part.is_error) for part in results] == [
            (each.id, each.id == "c1", each.id == "c2") for each in calls]


def test_results_of_calls_without_ids_find_their_places() -> None:
    """Gemini gives none, and two calls of one tool differ in their places only."""
    first, refused, third = call(id=None), call(BAD, id=None), call('{"path": "c"}', id=None)
    for calls in ((first, refused, third), (refused, first, third), (first, third, refused)):
        source = Foreign(answer(Stop.TOOL_CALL, *calls), answer(Stop.END_TURN, "end"))
        history = last(drive([], source=source)).history
        (results,) = [message.results for message in history if message.results]
        assert [part.text == "ran" for part in results] == [each is not refused for each in calls]


def test_what_a_policy_would_have_run_is_told_beside_the_effect() -> None:
    cut = call(CUT)
    trace = drive([answer(Stop.TOOL_CALL, cut), answer(Stop.END_TURN, "end")], policy=POLICIES["pi-presence"])
    (effect,) = dispatches(trace)
    assert effect.released == ()
    assert [(each.verdict.call, each.verdict.admission, each.result.is_error) for each in effect.answers] == [
        (cut, Admission.HELD, True)]
    turn = next(step.turn for step in trace.steps if effect in step.effects)
    assert [verdict.call for verdict in turn.would_run] == [cut]
