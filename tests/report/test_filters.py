"""The filter language over sessions built by hand: what each term finds, and where errors point."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector import cli
from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report import filter_terms, filters
from inspector.report.facts import view
from inspector.report.filter_terms import FLAGS, NUMBERS, PATTERNS, WORDS
from inspector.report.verdict import ROWS
from inspector.sessions import open_paths
from loop_core.turn.state import Send, State
from loop_core.turn.trace import Step
from tests.scenes import transcripts as agents
from tests.scenes.recordings import (
    CUT,
    PARTS,
    TOOLS,
    WHOLE,
    call,
    chat,
    cut_text,
    exchange,
    lines,
    pair_of,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row

SAMPLES = Path(__file__).parents[2] / "sample_sessions"


@pytest.fixture(scope="module")
def cut():
    """One turn: a text cut four times; attempts 3, so that this loop ends it before the fifth answer."""
    return show(*cut_text(*PARTS))


@pytest.fixture(scope="module")
def run():
    """A call cut mid-JSON, which the recorded agent ran, then a clean answer."""
    asks = [user("write it")]
    held = chat(None, "length", call(CUT), tokens=40)
    said = {"role": "assistant", "content": None, "tool_calls": [call(CUT)]}
    return show(pair_of(asks, held, max_tokens=40), pair_of([*asks, said, result()],
                                                            chat("Written: report.", tokens=5)))


def states(view, text) -> list[str]:
    return [view.steps[index].state.value for index in filters.steps(filters.parse(text), view)]


def test_a_state_finds_each_step_that_enters_it(cut):
    pending = [index for index, step in enumerate(cut.steps) if step.state is State.CONTINUE_PENDING]
    assert len(pending) == 4
    assert filters.steps(filters.parse("state:ContinuePending"), cut) == pending
    assert filters.steps(filters.parse("state:continuepending"), cut) == pending
    assert filters.steps(filters.parse("state:Continue*"), cut) == pending


def test_words_of_a_response_hold_while_it_is_at_hand(run):
    found = filters.parse("tool:write_file")
    assert filters.responses(found, run) == [0]
    assert {run.steps[index].response for index in filters.steps(found, run)} == {0}
    assert filters.responses(filters.parse("tool:write_* held raw:length"), run) == [0]
    assert filters.responses(filters.parse("tool:read_*"), run) == []
    assert filters.responses(filters.parse("ran"), run) == [0]
    assert filters.responses(filters.parse("!held stop:end_turn"), run) == [1]


def test_numbers_compare_what_was_spent(cut):
    spent = [step.turn.spend.attempts for step in cut.steps]
    for text, holds in {
        "attempt>1": lambda n: n > 1, "attempt>=2": lambda n: n >= 2, "attempt=3": lambda n: n == 3,
        "attempt:3": lambda n: n == 3, "attempt!=0": lambda n: n != 0, "attempt<1": lambda n: n < 1,
        "attempt<=1": lambda n: n <= 1, "attempt>=66%": lambda n: n >= 2, "budget>=100%": lambda n: n >= 3,
    }.items():
        assert filters.steps(filters.parse(text), cut) == [i for i, n in enumerate(spent) if holds(n)], text


def test_a_share_of_no_bound_is_never_reached(cut):
    # No max_tokens in the requests, so that no bound on tokens is derived: 45 tokens are no share of it.
    assert filters.steps(filters.parse("cont_tokens>=0%"), cut) == []
    assert filters.steps(filters.parse("cont_tokens>=40"), cut) != []


@each_row(("sample", "text", "turns", "responses"), [
    # 01: a text that is cut again and again, then a call that is cut; the last bytes of the first answer came at 760 ms
    ("01", "conversation:c1", [1, 2], list(range(8))), ("01", "conversation:c2", [], []),
    ("01", "attention", [1, 2], list(range(8))), ("01", "complete", [], []), ("01", "turn=2", [2], [6, 7]),
    ("01", "took=760", [1], [0]), ("01", "took=760ms", [1], [0]), ("01", "took=0.76s", [1], [0]),
    ("01", "took>=1m", [], []), ("01", "took<1h", [1, 2], list(range(8))),
    ("01", "corrected", [], []), ("01", "cap>0", [], []),
    # 02: a text that is cut twice and completed
    ("02", "attention", [], []), ("02", "complete", [1], [0, 1, 2]),
    # 05: a call under max_tokens 60 that is cut, and whole when it is asked for again
    ("05", "repairs=1", [1], [0, 1, 2]), ("05", "repairs=2", [], []), ("05", "ready", [1], [1]),
    ("05", "held", [1], [0]), ("05", "rejected", [], []), ("05", "cap=60", [1], [0, 1, 2]),
    # 08: `tool_calls` over a call that was cut
    ("08", "corrected", [1], [0]), ("08", "size=SIZE", [1], [0]), ("08", "size>SIZE", [], []),
    ("08", "mapped:tool_call", [1], [0]), ("08", "mapped:max_tokens", [], []), ("08", "rule:judge.*", [1], [0]),
    ("08", "finding:judge.native_word", [1], [0]), ("08", "provider:openrouter", [1], [0]),
    ("08", "model:anthropic/*", [1], [0]), ("08", "file:*08-router*", [1], [0]), ("08", "next:*ends", [1], [0]),
    ("08", 'session:"A router*"', [1], [0]),
    # 01 again: this loop ends the first turn at its limit of attempts, behind the fourth answer
    ("01", "end:retry_limit", [1], list(range(6))), ("01", "signal:retry_limit", [1], [3]),
    ("01", "fidelity:RECORDED", [1, 2], list(range(8))), ("01", "fidelity:LIVE", [], []),
    # 13: pause_turn is answered by an echo of the paused answer; 19: a transcript of pi, in pi's own words
    ("13", "detail:echo", [1], [0]), ("19", "agent:pi", [1, 2], list(range(4))),
    ("19", "recorder:length", [1, 2], [0, 2]),
])
def test_terms_find_the_turns_and_responses_of_the_samples(sample, text, turns, responses):
    (path,) = SAMPLES.glob(f"{sample}-*")
    seen = view(replay(open_case(open_paths([str(path)])), Settings()))
    found = filters.parse(text.replace("SIZE", str(len(seen.responses[0].exchange.body))))
    assert sorted({seen.replay.turn_at(step) + 1 for step in filters.steps(found, seen)}) == turns
    assert filters.responses(found, seen) == responses


def test_an_answer_that_only_looks_finished_has_an_ending():
    empty = show(pair_of([user("write it")], chat("", "stop"), max_tokens=50))
    assert filters.responses(filters.parse("ending:empty_answer"), empty) == [0]
    assert filters.responses(filters.parse("ending:no_call"), empty) == []


def test_a_call_of_a_tool_that_was_not_offered_is_rejected():
    answers = show(pair_of([user("write it")], chat(None, "tool_calls", {
        "id": "c", "type": "function", "function": {"name": "rm", "arguments": "{}"}}), tools=TOOLS))
    assert filters.responses(filters.parse("rejected"), answers) == [0]
    assert filters.responses(filters.parse("ready"), answers) == []


def test_tokens_and_chars_count_every_response():
    """A call of 12 tokens that nothing cut and an answer of 5: no bound on continuations counts either."""
    asks, made = [user("write it")], call(WHOLE)
    said = {"role": "assistant", "content": None, "tool_calls": [made]}
    whole = show(pair_of(asks, chat(None, "tool_calls", made, tokens=12)),
                  pair_of([*asks, said, result()], chat("It is written.", tokens=5)))
    for text in ("turn_tokens=17", "chars=14", "cont_tokens=0", "cont_chars=0"):
        assert states(whole, f"state:Complete {text}") == ["Complete"], text
    with pytest.raises(filters.FilterError):
        filters.parse("turn_tokens>=80%")


def test_patterns_search_texts(cut, run):
    assert filters.responses(filters.parse("~t written"), run) == [1]
    assert filters.responses(filters.parse('~t "written: rep"'), run) == [1]
    assert filters.responses(filters.parse(r"~a one\stw"), run) == [0]
    assert filters.responses(filters.parse("~b finish_reason"), run) == [0, 1]
    assert filters.responses(filters.parse("~q ^write.it"), run) == [0, 1]
    assert filters.responses(filters.parse("~u openai"), cut) == [0, 1, 2, 3, 4]
    thought = chat("Hi")
    thought["choices"][0]["message"]["reasoning_content"] = "Greet them."
    said = exchange({"model": "m-1", "messages": [user("hi")]}, thought, response_headers={"x-served-by": "edge-7"})
    assert filters.responses(filters.parse("~r greet"), show(said)) == [0]
    assert filters.responses(filters.parse("~h x-served-by:.edge-7"), show(said)) == [0]
    assert filters.responses(filters.parse("~t greet | ~b edge-7"), show(said)) == []


@pytest.fixture(scope="module")
def simulation():
    """A recorded text of 12 words, a token each, which ended well: run again at 5 tokens, it is cut twice."""
    words = [{"choices": [{"index": 0, "delta": {"content": f"word{number} "}}]} for number in range(12)]
    end = [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
           {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 12}}]
    sent = "".join(f"data: {json.dumps(event)}\n\n" for event in words + end) + "data: [DONE]\n\n"
    return show(pair_of([user("say it")], sent, max_tokens=64), settings=Settings(simulate=True, max_tokens=5))


def test_a_simulated_answer_is_found_as_a_recorded_one(simulation):
    cut = filters.steps(filters.parse("stop:max_tokens"), simulation)
    assert len({filter_terms.StepContext(simulation, index).answer for index in cut}) == 2
    assert {simulation.steps[index].response for index in cut} == {None}
    assert filters.steps(filters.parse("stop:max_tokens cut changed raw:length out=5"), simulation) == cut
    assert states(simulation, "~t word11 state:EvaluateStop") == ["EvaluateStop"]
    assert states(simulation, "segment=3 state:EvaluateStop") == ["EvaluateStop"]
    assert filters.responses(filters.parse("stop:max_tokens"), simulation) == []


def test_a_breakpoint_stops_at_each_simulated_answer(simulation):
    found = filters.parse("cut")
    first = filters.hit_after(found, simulation, 0, 1, frozenset())
    second = filters.hit_after(found, simulation, first, 1, frozenset())
    third = filters.hit_after(found, simulation, second, 1, frozenset())
    assert [simulation.steps[index].state for index in (first, second)] == [State.EVALUATE_STOP] * 2
    assert third is None


def test_connectives_and_brackets(run):
    assert states(run, "held & state:EvaluateStop") == states(run, "held state:EvaluateStop") == ["EvaluateStop"]
    either = filters.steps(filters.parse("held | stop:end_turn"), run)
    assert either == sorted({*filters.steps(filters.parse("held"), run),
                             *filters.steps(filters.parse("stop:end_turn"), run)})
    # `and` binds closer than `or`.
    assert states(run, "state:Request held | state:Complete") == states(run, "(state:Request held) | state:Complete")
    assert states(run, "state:EvaluateStop (held | stop:end_turn)") == ["EvaluateStop", "EvaluateStop"]
    assert states(run, "!(held | stop:end_turn) state:EvaluateStop") == []
    assert states(run, "!!held") == states(run, "held")


def test_marks_are_the_operators(run):
    found = filters.parse("marked")
    assert filters.steps(found, run) == []
    assert filters.steps(found, run, frozenset({2})) == [2]


def test_breakpoints_stop_where_it_begins_and_at_each_further_response(cut):
    found = filters.parse("stop:max_tokens")
    hits, at = [], -1
    while (at := filters.hit_after(found, cut, at, 1, frozenset())) is not None:
        hits.append(at)
    evaluated = [i for i, step in enumerate(cut.steps)
                 if step.state is State.EVALUATE_STOP and cut.responses[step.response].index < 4]
    assert hits == evaluated
    back, at = [], len(cut.steps)
    while (at := filters.hit_after(found, cut, at, -1, frozenset())) is not None:
        back.append(at)
    assert back == hits[::-1]


@each_row(("text", "column", "says"), [
    ("", 1, "empty"),
    ("   ", 1, "empty"),
    ("held (", 7, "expression ends"),
    ("(held", 1, "not closed"),
    ("held)", 5, "closes no bracket"),
    ("held |", 7, "expression ends"),
    ("| held", 1, "where a term is expected"),
    ("heldd", 1, 'column 1: did you mean held? unknown term \'heldd\'; in "quotes" it is searched as text'),
    ("pi:length", 1, '"pi:length" in quotes is searched as text'),
    ("zebra:1", 1, '"zebra:1" in quotes is searched as text; unknown term \'zebra\', expected one of held, '),
    ("reason:max_tokens", 1, "did you mean stop?"),
    ("duration_ms>1", 1, "did you mean took?"),
    ("cost>1", 1, "unknown term 'cost', expected one of held"),  # the name of a term is meant, no value: verdict:LOST
    ("held and cut", 6, "did you mean &?"),
    ("held OR cut", 6, "did you mean |?"),
    ("!END not recorded", 1, "end needs a value"),
    ("tokens>50", 1, "did you mean out?"),
    ("started>50", 1, "did you mean age?"),
    ("not held", 1, "did you mean !?"),
    ('held ""', 6, "nothing to search for"),
    ("held *", 6, "nothing to search for"),
    ("held stpo:length", 6, "did you mean stop?"),
    ("held stop:max_token", 11, "did you mean stop:max_tokens?"),
    ("verdict:hel", 9, "did you mean verdict:HELD?"),
    ("verdict:loost", 9, "did you mean verdict:LOST?"),
    ("verdict:trunc", 9, "did you mean verdict:TRUNCATED?"),
    ("verdict:zzz", 9, "verdict:* finds any"),
    ("stop!=lenth*", 7, "expected one of end_turn, tool_call"),
    ("verdict:limit_reachd", 9, "column 9: did you mean verdict:limit_reached? verdict is never 'limit_reachd'"),
    ("stop:length", 6, "column 6: did you mean raw:length? stop is never 'length'"),
    ("took>3w", 6, "'3w' is not a number; expected took>1, also with ms, s, m, h, d, y"),
    ("out>3s", 5, "'3s' is not a number; expected out>1"),
    ("state:Abrt", 7, "did you mean state:Abort?"),
    ("api:openai", 5, "did you mean api:openai_chat?"),
    ("stop>3", 5, "is a word, not a number"),
    ("held:yes", 5, "takes no value"),
    ("attempt>x", 9, "is not a number"),
    ("attempt>", 9, "is not a number"),
    ("stop:", 6, "needs a value"),
    ("stop", 1, 'needs a value, such as stop:…; in "quotes" it is searched as text'),
    ("step>=50%", 7, "has no limit"),
    ('held "disk full', 6, "this quote is not closed"),
    ('model:"gpt', 7, "this quote is not closed"),
    ('model:"gpt\\"', 7, "this quote is not closed"),
    ('~t "report', 4, "this quote is not closed"),
    ("~t (a|b)", 1, "in quotes if it has brackets"),
    ("~z word", 1, "unknown ~z"),
    ("~b", 1, "expected ~ with one of"),
    ("held ~b a[", 10, "unterminated character set"),
    ("held %", 6, "does not begin a term"),
    ("!" * 101 + "held", 101, "more than 100"),
    ("(" * 5000, 101, "more than 100"),
    ("held " * 1_001, 5_001, "more than 1,000 terms"),
    ('"word" | ' * 1_001, 9_001, "more than 1,000 terms"),
])
def test_errors_point_at_the_column(text, column, says):
    with pytest.raises(filters.FilterError) as caught:
        filters.parse(text)
    assert caught.value.column == column
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"column {column}: ")


@pytest.mark.parametrize("name", [*WORDS, *FLAGS, *NUMBERS, *PATTERNS])
def test_every_term_is_read_and_answers(name, cut, run):
    text = (f"{name}:*" if name in WORDS else name if name in FLAGS else f"{name}>=0" if name in NUMBERS
            else f"~{name} .")
    found = filters.parse(text)
    negated = filters.parse(f"!{text}")
    for seen in (cut, run):
        every = list(range(len(seen.steps)))
        assert sorted(filters.steps(found, seen) + filters.steps(negated, seen)) == every
    table = WORDS.get(name) or FLAGS.get(name) or NUMBERS.get(name) or PATTERNS[name]
    assert table.about


@given(st.text(alphabet='held()&|!~bt:*"\\ >=1%x', max_size=30))
def test_any_text_is_read_or_refused_in_one_line(text):
    problem = None
    try:
        filters.parse(text)
    except filters.FilterError as why:
        problem = why
    assert problem is None or (1 <= problem.column <= len(text) + 1 and "\n" not in str(problem))


def test_step_records_are_words(cut):
    found = filters.steps(filters.parse("event:continuation_attempt"), cut)
    having: list[Step] = [step for step in cut.steps if any(r["event"] == "continuation_attempt" for r in step.records)]
    assert [cut.steps[index] for index in found] == having
    assert len(having) == 3


def test_the_same_string_headless(tmp_path, capsys):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(*cut_text(*PARTS)))
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", str(path), "--filter", "stop:end_turn"], standalone_mode=False)
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "filter: 1 of 5 responses matches" in said
    assert "response 5 (" in said
    assert "response 4 (" not in said
    with pytest.raises(SystemExit):
        cli.main(["explain", str(path), "--filter", "stop:end_turn", "--json"], standalone_mode=False)
    made = json.loads(capsys.readouterr().out)
    assert made["filter"] == {"text": "stop:end_turn", "responses": [4]}
    assert len(made["responses"]) == 5
    with pytest.raises(filters.FilterError, match="column 1: did you mean held"):
        cli.main(["explain", str(path), "--filter", "helt"], standalone_mode=False)
    with pytest.raises(SystemExit):
        cli.main(["explain", str(path), "--filter", "nonsense"], standalone_mode=False)
    said = capsys.readouterr()
    assert "filter: 0 of 5 responses match" in said.out
    assert said.err == 'inspector: --filter: "nonsense" as text\n'


def test_every_rule_that_a_screen_prints_is_found(run):
    """The rule that read the reason, the one that decided the call, and the one of what the agent did with it."""
    (verdict,) = run.responses[0].verdicts
    printed = {*(each.rule for each in run.responses[0].evidence), verdict.rule, *(
        each.finding.rule for each in run.findings if each.response == 0)}
    assert {verdict.rule.partition(".")[0], "agent.ran_held_call"} <= {"gate", *printed}
    for rule in printed:
        assert 0 in filters.responses(filters.parse(f"rule:{rule}"), run), rule
    assert filters.responses(filters.parse("rule:agent.ran_held_call"), run) == [0]
    assert filters.responses(filters.parse(f"rule:{verdict.rule}"), run) == [0]


def test_a_finding_about_a_turn_and_no_response_is_found(run):
    note, *_ = run.findings
    whole = replace(run, findings=(note._replace(response=None, turn=run.turns[0].id),))
    assert filters.responses(filters.parse(f"finding:{note.finding.rule}"), whole) == [0, 1]


def test_a_verdict_of_several_words_is_the_term_that_finds_it(cut, run):
    """As the row prints it, also where each of its words is a term: CALL and HELD."""
    for row in ROWS:
        for seen in (cut, run):
            typed = filters.steps(filters.parse(row.word.lower()), seen)
            if " " in row.word:
                assert typed == filters.steps(filters.parse(f'verdict:"{row.word}"'), seen), row.word
    assert filters.steps(filters.parse("cut  call RUN"), run) == list(range(len(run.steps)))


def test_what_a_step_prints_is_found(cut):
    """The method of a request, the status of an answer, and the conversation."""
    anchored = [at for at, step in enumerate(cut.steps) if any(
        isinstance(effect, Send) and effect.method.value == "anchor" for effect in step.effects)]
    assert filters.steps(filters.parse("method:anchor"), cut) == anchored != []
    assert filters.steps(filters.parse("method:first"), cut) == filters.steps(filters.parse("state:Request"), cut)
    assert filters.responses(filters.parse("status=200"), cut) == [*range(5)]
    assert filters.responses(filters.parse("status>=400"), cut) == []
    assert filters.search_note(filters.parse("anchor c1"), filters.values_of(cut)) == (
        '"anchor" as text (method:anchor for that value alone), "c1" as text (conversation:c1 for that value alone)')


def test_inferred_finds_an_end_that_other_rows_show(tmp_path):
    rows = [agents.prompt("hi"), agents.block(agents.text("Hello.")), agents.prompt("again"),
            agents.block(agents.text("Hello."), "msg_02", stop="end_turn")]
    seen = agents.show(agents.claude(*rows), tmp_path)
    assert filters.responses(filters.parse("inferred"), seen) == [0]


@each_row("text", [
    "one", "ONE.2", '"one.2 two"', "o*.2", "*e.2", "wr*.py", '"say \\"it\\""', "größe", "src/a-b.py", "404", "it's",
    "100%", "one.2 404", "one.2|zebra", "!zebra", '(one.2)!"zebra"',
])
def test_a_word_that_is_no_term_is_searched(text):
    said = 'One.2 two, größe, it\'s 100% of src/a-b.py: 404, say "it"'
    seen = show(pair_of([user("Hello")], chat(said, "stop"), max_tokens=64),
                 pair_of([user("write.py")], chat(said.upper(), "stop"), max_tokens=64))
    assert 1 in filters.responses(filters.parse(text), seen)


@each_row("text", ["zebra", '"two one"', "one zebra", "!one.2", "one*two"])
def test_a_word_that_no_text_has_finds_nothing(text):
    seen = show(pair_of([user("Hello")], chat("One.2 two", "stop"), max_tokens=64))
    assert filters.responses(filters.parse(text), seen) == []


@each_row(("text", "searched"), [
    ("readme", ("readme",)), ("page image usage", ("page", "image", "usage")),
    ('held "held" rep*', ("held", "rep*")), ("cat ran", ("cat",)),
    ("stop:end_turn ~t word", ()), ("pi", ("pi",)), ("tool_calls", ("tool_calls",)),
    ("MALFORMED_FUNCTION_CALL", ("MALFORMED_FUNCTION_CALL",)),
    ("incomplete:max_output_tokens", ("incomplete:max_output_tokens",)),
])
def test_words_that_are_searched_are_known(text, searched):
    assert filters.parse(text).searched == searched


@each_row("name", ["rejected", "held", "ready", "truncated", "complete"])
def test_the_name_of_a_term_is_no_text_to_be_searched(name: str) -> None:
    assert filters.parse(name).searched == ()


def test_a_word_that_is_a_verdict_and_a_reason_finds_both(tmp_path):
    """The turn was stopped while it waited for the next answer, so the reason of its last answer is another."""
    seen = agents.show(agents.claude(
        agents.prompt("go"), agents.block(agents.use(path="a")), agents.result("done"),
        agents.prompt([agents.text("[Request interrupted by user]")]), agents.prompt("other"),
        agents.block(agents.text("Fine."), "msg_02", "end_turn")), tmp_path)
    assert (agents.words(seen), agents.stops(seen)) == (["CANCELLED", "COMPLETE"], ["tool_call", "end_turn"])
    assert filters.responses(filters.parse("cancelled"), seen) == [0]
    assert filters.responses(filters.parse("stop:cancelled"), seen) == []
