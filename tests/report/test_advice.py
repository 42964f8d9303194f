"""An advice is true: what it sets was tried and completes the turn, what was not tried has no number and says so."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings

from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.replay.recorded_calls import REFUSED
from inspector.replay.rerun import rerun
from inspector.report.advice import RAISED, Advice, Basis, about_rejected, about_silence
from inspector.report.explain import ReadOptions, command_to_try, text
from inspector.report.facts import View, view
from inspector.report.trial import DOUBLINGS, Trial, smallest
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from loop_core.judge.gate import Admission, Verdict
from loop_core.turn.limits import Limits
from loop_core.turn.presets import POLICIES
from loop_core.turn.trace import Fidelity
from loop_core.values import Severity, ToolCall
from tests.scenes import transcripts as agents
from tests.scenes.recordings import (
    ASKS,
    CHAT,
    CUT,
    GEMINI,
    HINT,
    MESSAGES,
    PARTS,
    RESPONSES,
    SEND_AGAIN,
    TOOLS,
    WHOLE,
    assistant,
    call,
    chat,
    cut_stream,
    cut_text,
    lines,
    message,
    pair_of,
    repair_turn,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row
from tests.whatif.test_sweep import stories

SHARED = Path(__file__).resolve().parents[3] / "shared"
CASES = Path(os.environ.get("LOOP_INSPECTOR_CASES") or SHARED / "cases")
CORPUS = Path(os.environ.get("LOOP_INSPECTOR_CORPUS") or SHARED / "corpus")
FIDELITIES = {Basis.RECORDED: Fidelity.RECORDED, Basis.SIMULATED: Fidelity.SIMULATED}


def advice_of(found: View, turn: int = 0) -> Advice:
    advice = found.turns[turn].verdict.advice
    assert advice is not None
    return advice


def holds(seen: View) -> int:
    """Runs every session again under what each of its advices sets; how many there were."""
    run = seen.replay
    tried = 0
    for number, turn in enumerate(seen.turns):
        advice = turn.verdict.advice
        if turn.verdict.severity is not Severity.INFO:
            assert advice is not None, f"turn {number + 1}: no advice"
        if advice is None:
            continue
        if advice.set is None:
            assert advice.basis is Basis.ESTIMATED
            assert not re.search(r"\d", advice.text), advice.text
            continue
        tried += 1
        after = view(rerun(run, settings_of(advice.set, run.settings), run.since)).turns[number]
        assert after.terminal == "completed", advice.text
        assert after.verdict.severity is Severity.INFO, (advice.text, after.verdict.word)
        assert after.verdict.sure
        made = rerun(run, settings_of(advice.set, run.settings), run.since)
        assert made.trace.steps[made.turns[number].deciding_step].fidelity is FIDELITIES[advice.basis]
    return tried


def open_view(path: Path) -> View:
    return view(replay(open_case(open_paths([str(path)]))))


# -- every advice is true ---------------------------------------------------------------------------------------------


@each_row("path", [each.path for each in samples()])
def test_every_advice_of_the_samples_holds(path: str) -> None:
    holds(open_view(Path(path)))


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not here")
def test_every_advice_of_the_cases_holds() -> None:
    for path in (path for folder in ("endings", "readings") for path in sorted((CASES / folder).glob("*"))):
        holds(open_view(path))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the recorded traffic is not here")
def test_every_advice_of_the_recorded_traffic_holds() -> None:
    for path in sorted([*CORPUS.glob("har/**/*.har"), *CORPUS.glob("transcripts/**/*.jsonl")]):
        holds(open_view(path))


KEYS = [f"call_{number:010}" for number in range(12)]
CALLS = [call(json.dumps({"path": f"{key}.md", "content": "one"}), key) for key in KEYS]
ROUNDS = [pair_of(
    [user("go"), *(said for key, made in zip(KEYS[:done], CALLS, strict=False) for said in (
        assistant(None, made), result(key=key)))],
    chat(None, "tool_calls", CALLS[done]) if done < len(CALLS) else chat("Done."), tools=TOOLS, max_tokens=100)
    for done in range(13)]
CUTS = cut_text(*(f"The {word} part of it is this, and the next " for word in (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")), max_tokens=10)


@given(story=stories)
@settings(max_examples=30, deadline=None)
def test_every_advice_of_any_session_holds(story: list[dict]) -> None:
    for policy in (Settings(), Settings(policy=POLICIES["zeroclaw-rfi"]), Settings(max_tokens=3, simulate=True),
                   Settings(Limits(continuation_max_attempts=0, max_tool_steps=1))):
        holds(show(*story, settings=policy))


def test_what_is_advised_is_the_smallest_that_will_do() -> None:
    tried = 0

    @example(story=CUTS)
    @given(story=stories)
    @settings(max_examples=30, deadline=None)
    def check(story: list[dict]) -> None:
        nonlocal tried
        for low in (Settings(Limits(continuation_max_attempts=0, max_tool_steps=1)),
                    Settings(max_tokens=3, simulate=True)):
            found = show(*story, settings=low)
            for number, turn in enumerate(found.turns):
                advised = turn.verdict.advice.set if turn.verdict.advice is not None else None
                for name, value in (advised or {}).items():
                    less = settings_of({**advised, name: str(int(value) - 1)}, low)
                    verdict = view(rerun(found.replay, less, found.replay.since)).turns[number].verdict
                    assert verdict.severity is not Severity.INFO, (advised, name)
                    tried += 1

    check()
    assert tried, "no advice had a number"


def test_a_search_finds_the_edge_and_gives_up_where_there_is_none() -> None:
    for edge in (4, 5, 6, 7, 20, 99, 100):
        looked: list[int] = []
        assert smallest(3, 100, lambda value, edge=edge, looked=looked:
                        looked.append(value) or (f"at {value}" if value >= edge else None)) == f"at {edge}"
        assert len(looked) < 16
        assert len(looked) == len(set(looked)), "a value was tried twice"
    assert smallest(3, 100, lambda value: None) is None
    assert smallest(100, 100, lambda value: None) is None


def test_a_search_with_a_likely_value_finds_the_same_edge() -> None:
    for edge in (4, 5, 7, 20, 99, 100):
        for likely in range(102):
            looked: list[int] = []
            assert smallest(3, 100, lambda value, edge=edge, looked=looked: looked.append(value) or (
                value if value >= edge else None), likely) == edge
            assert len(looked) == len(set(looked)), "a value was tried twice"
            assert likely != edge or looked == [value for value in (edge - 1, edge) if value > 3]


@pytest.mark.parametrize(("name", "story", "others", "needed"), [
    ("max_tool_steps", ROUNDS, {"max_tokens": "6", "continuation_tool_repair_attempts": "100"}, 12),
    ("continuation_max_attempts", CUTS, {}, 9),
])
def test_a_limit_on_a_count_is_found_in_three_runs(
        name: str, story: list[dict], others: dict, needed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run under the highest value counts what the turn needs; this many and one less are tried."""
    tried: list[dict] = []
    as_it_is = Trial._run
    monkeypatch.setattr(Trial, "_run", lambda self, values: tried.append(dict(values)) or as_it_is(self, values))
    found = show(*story, settings=settings_of({**others, TOTAL: "10000", name: "1"}, Settings()))
    advice = found.turns[0].verdict.advice
    assert advice is not None
    assert advice.set == {name: str(needed)}
    assert [each[name] for each in tried] == [str(RAISED[name]), str(needed - 1), str(needed)]


def test_a_cut_that_no_cap_completes_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last answer was cut in the recording: nothing is known of its rest, whatever cap is tried."""
    story = [*ROUNDS[:2], pair_of(ROUNDS[2]["request"]["body"]["messages"],
                                  chat("It goes on and", "length", tokens=100),
                                tools=TOOLS, max_tokens=100)]
    tried: list[dict] = []
    as_it_is = Trial._run
    monkeypatch.setattr(Trial, "_run", lambda self, values: tried.append(dict(values)) or as_it_is(self, values))
    verdict = show(*story, settings=settings_of({"max_tokens": "30"}, Settings())).turns[0].verdict
    assert (verdict.advice.set, [int(each["max_tokens"]) for each in tried if "max_tokens" in each]) == (
        None, [30 << DOUBLINGS])


# -- what is tried ----------------------------------------------------------------------------------------------------


def test_a_limit_is_raised_no_further_than_the_recording_needs() -> None:
    """Five parts are four continuations, and the limit is three."""
    advice = advice_of(show(*cut_text(*PARTS)))
    assert advice == Advice("raise continuation_max_attempts to 4: a replay of the recording then completes the turn",
                            Basis.RECORDED, {"continuation_max_attempts": "4"})


def test_limits_that_end_a_turn_one_after_the_other_are_raised_together() -> None:
    """Four answers of 40 tokens spend 160; the bound is 4 x 20, and has to leave room for the 5 of the last answer."""
    advice = advice_of(show(*cut_text(*PARTS, tokens=40, max_tokens=20)))
    assert advice.set == {"continuation_max_attempts": "4", "continuation_max_total_completion_tokens": "165"}
    assert advice.basis is Basis.RECORDED


def test_characters_are_a_limit_too() -> None:
    said = sum(map(len, PARTS[:2]))
    found = show(*cut_text(*PARTS[:2], PARTS[-1]), settings=Settings(Limits(continuation_max_output_chars=20)))
    assert "continuation_max_output_chars (31 of 20) ended the turn" in found.turns[0].verdict.sentence
    assert advice_of(found).set == {"continuation_max_output_chars": str(said + 1)}


def test_a_second_repair_that_was_recorded_is_advised() -> None:
    again = [*ASKS, assistant("I will write it."), user(SEND_AGAIN)]
    once_more = [*again, assistant("I will write it."), user(SEND_AGAIN)]
    whole = [*once_more, assistant(None, call(WHOLE, "call_f6g7h8i9j0")), result(key="call_f6g7h8i9j0")]
    found = show(
        pair_of(ASKS, chat("I will write it.", "length", call(CUT), tokens=40), tools=TOOLS, max_tokens=40),
        pair_of(again, chat("I will write it.", "length", call(CUT), tokens=40), tools=TOOLS, max_tokens=40),
        pair_of(once_more, chat(None, "tool_calls", call(WHOLE, "call_f6g7h8i9j0")), tools=TOOLS, max_tokens=80),
        pair_of(whole, chat("It is written."), tools=TOOLS, max_tokens=40))
    assert advice_of(found).set == {"continuation_tool_repair_attempts": "2"}


def test_answers_of_reasoning_alone_are_a_limit() -> None:
    thought = {"prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29,
               "completion_tokens_details": {"reasoning_tokens": 20}}
    history, made = [*ASKS], []
    for _ in range(2):
        made.append(pair_of(list(history), chat(None, "length", usage=thought), max_tokens=20))
        history.append(user(HINT))
    made.append(pair_of(list(history), chat("There it is."), max_tokens=20))
    found = show(*made)
    assert "max_thinking_only (2 of 1) ended the turn" in found.turns[0].verdict.sentence
    assert advice_of(found).set == {"max_thinking_only": "2"}


def test_a_budget_is_raised_where_the_whole_output_is_known() -> None:
    """A continuation that adds nothing ends the turn, and no limit helps; 10 + 10 + 5 tokens are all of the answer."""
    found = show(*cut_text("The first part is about water, ", " ", "and the rest is about fire.", max_tokens=10),
                  settings=Settings(Limits(min_progress_chars=2)))
    verdict = found.turns[0].verdict
    assert "min_progress_chars (2) ended the turn" in verdict.sentence
    assert advice_of(found).basis is Basis.SIMULATED
    assert advice_of(found).set is not None
    assert advice_of(found).set.keys() == {"max_tokens"}
    assert 10 < int(advice_of(found).set["max_tokens"]) <= 25
    assert advice_of(found).text.endswith(": a simulation then completes the turn, which is a guess")
    assert holds(found) == 1


def test_the_session_of_a_simulation_is_advised_by_the_simulation() -> None:
    whole = pair_of(ASKS, chat("The quick brown fox jumps over lazy dogs", tokens=10), max_tokens=50)
    found = show(whole, settings=Settings(Limits(continuation_max_attempts=1), max_tokens=3, simulate=True))
    assert advice_of(found).basis is Basis.SIMULATED
    assert holds(found) == 1


def test_a_limit_that_ends_a_recording_is_named_and_nothing_is_promised() -> None:
    limits = Settings(Limits(max_tool_steps=0))
    found = show(pair_of(ASKS, chat(None, "tool_calls", call()), tools=TOOLS), settings=limits)
    verdict = found.turns[0].verdict
    assert verdict.word == "LIMIT REACHED"
    assert "limit max_tool_steps (0 of 0) ended the turn: openai_chat (openai) asked for tools" in verdict.sentence
    assert advice_of(found).text == f"raise max_tool_steps; {NEVER}"


def test_where_a_turn_does_not_complete_without_its_limits_no_value_between_is_tried(monkeypatch) -> None:
    """In sample 04 the recording ends behind the limit."""
    asked_for: list[Settings] = []
    monkeypatch.setattr("inspector.replay.rerun.rerun", lambda parent, settings, since:
                        asked_for.append(settings) or rerun(parent, settings, since))
    open_view(Path(samples()[3].path))
    assert [each.limits.continuation_max_total_completion_tokens for each in asked_for] == [1_000_000_000]


TOTAL = "continuation_max_total_completion_tokens"


@pytest.mark.parametrize(("number", "limit", "raised"), [
    (3, "continuation_max_attempts (3 of 3)", f"continuation_max_attempts and {TOTAL}"),
    (4, f"{TOTAL} (160 of 160)", TOTAL),
    (6, "continuation_tool_repair_attempts (1 of 1)", "continuation_tool_repair_attempts"),
])
def test_the_limit_that_ended_a_turn_is_told_with_what_was_spent(number: int, limit: str, raised: str) -> None:
    """Three continuations; four answers of 40 tokens; one repair: as the samples' own stories say.

    The first of them also spends all of its 4 x 24 tokens, so that more attempts alone change nothing.
    """
    found = open_view(Path(samples()[number - 1].path))
    assert found.turns[0].verdict.sentence.endswith(f"; this loop's limit {limit} ended the turn")
    assert advice_of(found).text == f"raise max_tokens, or {raised}; {NEVER}"


def test_a_limit_on_cuts_by_another_cap_is_raised_and_max_tokens_is_not() -> None:
    """The server cuts at 40 tokens, although 400 are asked for: a larger max_tokens changes nothing."""
    advice = advice_of(show(*cut_text(*PARTS, last="length", tokens=40, max_tokens=400)))
    assert advice.text == f"raise continuation_max_attempts: the answer ended below max_tokens; {NEVER}"
    assert advice.guess == {"continuation_max_attempts": "6"}
    used_up = advice_of(show(*cut_text(*PARTS, last="length", tokens=40, max_tokens=40)))
    assert used_up.guess == {"max_tokens": "1024"}, "here the cap of the request is what cuts"


def steps_of_tools(count: int, *last: agents.Row) -> str:
    """A transcript of one turn: so many calls that ran, and how it ended."""
    rows = [agents.prompt("write it all")]
    for number in range(count):
        key = f"toolu_{number}"
        whole = agents.use(key, file_path=f"{number}.md", content="all of it")
        rows += [agents.block(whole, key=f"msg_{number}", stop="tool_use"), agents.result("ok", key)]
    return agents.claude(*rows, *last)


@pytest.mark.parametrize(("last", "word", "advice"), [
    (agents.failure("Prompt is too long"), "CONTEXT FULL",
     "shorten the request: it does not fit in the context window"),
    (agents.block(agents.text("It is"), key="msg_last", stop="max_tokens"), "TRUNCATED", "raise max_tokens; "),
    (agents.block(agents.use("toolu_last", file_path="a"), key="msg_last", stop="max_tokens"), "CALL HELD",
     "raise max_tokens; "),
])
def test_a_limit_on_tools_has_nothing_to_do_with_an_answer_behind_it(
    tmp_path: Path, last: agents.Row, word: str, advice: str
) -> None:
    """The agent of a transcript made more tool steps than our loop allows, and was then cut or full."""
    few, many = (agents.show(steps_of_tools(count, last), tmp_path, name=f"{count}.jsonl").turns[0].verdict
                 for count in (2, 12))
    assert many.word == word
    assert "max_tool_steps" not in many.sentence
    assert many.advice is not None
    assert many.advice.text.startswith(advice)
    assert (few.word, few.sentence, few.advice) == (many.word, many.sentence, many.advice)


def test_a_limit_of_nothing_is_guessed_as_more_than_nothing() -> None:
    limits = Settings(Limits(max_tool_steps=0))
    found = show(pair_of(ASKS, chat(None, "tool_calls", call()), tools=TOOLS), settings=limits)
    assert advice_of(found).guess == {"max_tool_steps": "1"}


def test_the_same_call_again_and_again_is_no_matter_of_a_limit() -> None:
    history, made = [*ASKS], []
    for number in range(2):
        made.append(pair_of(list(history), chat(None, "tool_calls", call(key=f"call_{number}a1b2c3d4e")), tools=TOOLS))
        history += [assistant(None, call(key=f"call_{number}a1b2c3d4e")), result("ok", f"call_{number}a1b2c3d4e")]
    found = show(*made, settings=Settings(Limits(max_identical_calls=1)))
    assert "max_identical_calls (2 of 1) ended the turn" in found.turns[0].verdict.sentence
    assert "keeps making the same call" in advice_of(found).text


# -- what is guessed --------------------------------------------------------------------------------------------------

NEVER = "only a live run can show what is enough"


def usage(used: int, reasoning: int | None = None) -> dict:
    details = {} if reasoning is None else {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return {"prompt_tokens": 9, "completion_tokens": used, "total_tokens": 9 + used, **details}


@each_row(
    ("used", "cap", "reasoning", "said"),
    [
        (400, 400, None, "raise max_tokens;"),
        (390, 400, None, "raise max_tokens;"),  # a few tokens less are the end mark's, or the provider's own count
        (256, 400, None, "raise the cap or the context of the server or router: the answer ended below max_tokens"),
        (256, 400, 200, "raise max_tokens;"),  # reasoning is counted in blocks, or apart
        (800, 400, None, "set the cap at the server or router: it did not keep to max_tokens"),
        (401, 400, None, "raise max_tokens;"),
        (16, 1, None, "set the cap at the server or router"),
        (800, 400, 700, "raise max_tokens;"),
        (32, None, None, "set max_tokens: the request leaves it to the server;"),
    ],
)
def test_a_router_with_a_cap_of_its_own_is_recognised(used, cap, reasoning, said) -> None:
    more = {} if cap is None else {"max_tokens": cap}
    found = show(pair_of(ASKS, chat("The first", "length", usage=usage(used, reasoning)), **more),
                  settings=Settings(Limits(continuation_max_total_completion_tokens=10**6)))
    assert advice_of(found).text.startswith(said)
    assert advice_of(found).set is None
    cutter = f"cut by the provider at {used} of {cap} tokens" in found.turns[0].verdict.sentence
    assert cutter == ("ended below" in said), "the sentence blames the budget only where it was spent"


def test_tokens_that_only_the_total_counts_are_no_sign_of_another_cap() -> None:
    """Gateways to Gemini: 10 tokens of text and 87 of thinking, under a cap of 100."""
    (turn,) = show(pair_of(ASKS, chat("The first", "length", usage={**usage(10), "total_tokens": 106}),
                          max_tokens=100)).turns
    assert turn.verdict.advice is not None
    assert turn.verdict.advice.text.startswith("raise max_tokens;")
    assert turn.verdict.sentence.endswith('"length", 10 of 100 tokens')
    (found,) = [note.finding for note in turn.findings]
    assert (found.rule, found.severity) == ("openai_chat.usage_uncounted", Severity.INFO)
    assert found.message == "106 tokens are reported in all, and only 19 as input or output"
    assert found.at is not None
    assert found.at.pointer == "/usage/completion_tokens"


def test_nothing_says_what_cut_a_call_under_a_clean_word() -> None:
    body = chat(None, "tool_calls", call(CUT), tokens=40)
    assert advice_of(show(pair_of(ASKS, body, tools=TOOLS, max_tokens=4_096))).text == (
        "ask for the call again: the answer ended below max_tokens, and what cut the call is unknown")
    body["choices"][0]["native_finish_reason"] = "MAX_TOKENS"
    told = advice_of(show(pair_of(ASKS, body, tools=TOOLS, max_tokens=4_096))).text
    assert told.startswith("raise the cap or the context of the server or router"), "the provider behind it names a cap"


OLLAMA_CHAT = "http://localhost:11434/api/chat"


@each_row(("url", "options", "said"), [
    (OLLAMA_CHAT, {}, "set max_tokens and num_ctx: the request leaves both to the server;"),
    (OLLAMA_CHAT, {"num_predict": -1}, "set max_tokens and num_ctx: the request leaves both to the server;"),
    ("http://192.168.0.7:8080/api/chat", {}, "set max_tokens and num_ctx"),
    ("http://localhost:11434/v1/chat/completions", {}, "set max_tokens and num_ctx"),
    (OLLAMA_CHAT, {"num_ctx": 8192}, "set max_tokens: the request leaves it to the server;"),
    (OLLAMA_CHAT, {"num_predict": 96}, "raise max_tokens;"),
    (OLLAMA_CHAT, {"num_predict": 1000}, "raise the cap or the context of the server"),
])
def test_a_context_that_no_request_set_may_have_cut_an_answer_of_ollama(url: str, options: dict, said: str) -> None:
    own = {**OLLAMA, "done_reason": "length", "prompt_eval_count": 4000, "eval_count": 96}
    body = own if url.endswith("/api/chat") else chat("The first", "length", tokens=96)
    assert advice_of(show(pair_of(ASKS, body, url=url, stream=False, options=options))).text.startswith(said)


@each_row(("message", "said"), [
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
     "shorten the request or lower max_tokens: together they do not fit in the context window"),
    ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, "
     "8000 in the completion).", "shorten the request or lower max_tokens: together they do not fit"),
    ("The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (7968).",
     "shorten the request or lower max_tokens: together they do not fit"),
    ("prompt is too long: 210000 tokens > 200000 maximum", "shorten the request: it does not fit in the context"),
])
def test_a_request_that_fits_under_a_smaller_cap_is_told_as_such(message: str, said: str) -> None:
    error = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": message}
    found = show(pair_of(ASKS, {"error": error}, status=400, max_tokens=8000))
    assert found.turns[0].verdict.word == "CONTEXT FULL"
    assert advice_of(found).text.startswith(said)


BLOCK = {"type": "tool_use", "id": "t", "name": "write_file", "input": {"path": "a.md", "content": "x"}}
STEERED = {"id": "r", "object": "response", "status": "incomplete", "output": [],
           "usage": {"input_tokens": 9, "output_tokens": 7}}
OLLAMA = {"model": "m", "message": {"role": "assistant", "content": "The first"}, "done": True}


@each_row(("url", "body", "asks", "said", "denied"), [
    (MESSAGES, {**message([BLOCK], "stop_sequence"), "stop_sequence": "END"}, {"max_tokens": 1000},
     "leave out the stop string", "cut by the provider"),
    (RESPONSES, {**STEERED, "incomplete_details": {"reason": "max_messages"}},
     {"max_output_tokens": 1000}, "raise the number of messages", "cut by the provider"),
    (RESPONSES, {**STEERED, "incomplete_details": {"reason": "steered"}}, {},
     "read the next response", "fetched by its id"),
    (GEMINI, {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "OTHER"}]}, {},
     "send the request again: the word is known", "--profile"),
    ("http://localhost:11434/api/chat", {**OLLAMA, "done_reason": "unload"}, {},
     "send the request again: the word is known", "--profile"),
    ("http://localhost:11434/api/chat",
     {**OLLAMA, "done_reason": "length", "prompt_eval_count": 4000, "eval_count": 96},
     {"options": {"num_ctx": 4096, "num_predict": 1000}}, "raise num_ctx of the request", "raise max_tokens"),
])
def test_what_ended_an_answer_is_not_taken_for_a_token_limit(url, body, asks, said, denied) -> None:
    (turn,) = show(pair_of(ASKS, body, url=url, **asks)).turns
    assert turn.verdict.advice is not None
    assert turn.verdict.advice.text.startswith(said)
    assert denied not in f"{turn.verdict.sentence} {turn.verdict.advice.text}"


def test_reasoning_that_ate_the_budget_is_said() -> None:
    found = show(pair_of(ASKS, chat(None, "length", usage=usage(64, 64)), max_tokens=64))
    assert found.turns[0].verdict.sentence.endswith('"length", 64 of 64 tokens, all spent on reasoning')
    assert advice_of(found).text == f"raise max_tokens or lower the reasoning effort; {NEVER}"


@each_row(
    ("stop", "said"),
    [("model_context_window_exceeded", "shorten the history; another continuation cannot succeed"),
     ("refusal", "change the prompt or the filter; a continuation will not help"),
     ("zz_new_word", "report the word"),
     ("STOP", "report the word: in gemini_generate it means end_turn, and a router may have passed it on"),
     (None, "check the answer before you use it; do not run any call from it")],
)
def test_other_ends_are_no_matter_of_a_budget(stop, said) -> None:
    found = show(pair_of(ASKS, message([{"type": "text", "text": "The"}], stop), url=MESSAGES, max_tokens=4000))
    assert advice_of(found).text == said


def test_an_unknown_word_of_an_unknown_server_may_be_known_to_one_that_is_named() -> None:
    found = show(pair_of(ASKS, chat("Hi.", "zz_new_word"), url="https://llm.example/v1/chat/completions",
                         max_tokens=40))
    assert advice_of(found).text == "name the server with --profile, or report the word"


@each_row(("body", "url", "status", "said"), [
    ({"type": "error", "error": {
        "type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}}, MESSAGES,
     400, "shorten the request: it does not fit in the context window"),
    (chat(None, "function_call_filter: UNEXPECTED_TOOL_CALL"), CHAT, 200,
     "declare the tool that the model wants to call, or remove its name from the prompts"),
    ({"message": {"content": "Hi"}, "model": "m", "choices": []}, "http://localhost:11434/api/chat", 200,
     "send the request again; nothing shows that a budget cut this answer"),
    ({"object": "chat.completion", "choices": []}, "http://localhost:11434/api/chat", 200,
     "send the request again, and look at the body: no answer was found in it"),
    ({"id": "resp_1", "object": "response", "status": "incomplete", "model": "m", "output": [], "error": None},
     RESPONSES, 200, "compare the tokens with the budget: whether it cut the answer is unknown"),
    ({"id": "x", "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": None, "refusal": "No."}, "finish_reason": "stop"}]},
     CHAT, 200, "change the prompt; a continuation will not help"),
])
def test_what_only_the_bytes_tell_apart_has_an_advice_of_its_own(body, url, status, said) -> None:
    assert advice_of(show(pair_of(ASKS, body, url=url, status=status))).text == said


def test_a_call_whose_pieces_and_whole_text_differ_is_a_matter_for_the_servers_maintainers() -> None:
    whole = {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "c1", "name": "remove",
             "arguments": '{"path": "old.txt"}'}
    events = [
        {"type": "response.output_item.added", "output_index": 0,
         "item": {**whole, "status": "in_progress", "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0,
         "delta": '{"path": "new.txt"}'},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": {
            "id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [whole]}},
    ]
    other = {**whole, "id": "fc_2", "call_id": "c2", "name": "look"}
    beside = [{"type": "response.output_item.done", "output_index": 1, "item": other},
              {"type": "response.completed", "response": {**events[-1]["response"], "output": [whole, other]}}]
    for sent in (events, [*events[:-1], *beside]):
        stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in sent)
        found = show(pair_of(ASKS, stream, url=RESPONSES))
        assert advice_of(found).text == (
            "ask for the call again, and report both versions to the maintainers of the server")
        assert "sent remove" in found.turns[0].verdict.sentence


def test_a_stream_that_broke_and_a_call_sent_twice_are_no_matter_of_a_budget() -> None:
    seen = advice_of(show(pair_of(ASKS, cut_stream("The first"))))
    assert seen.text == "send the request again; nothing shows that a budget cut this answer"
    malformed = chat(None, "function_call_filter: MALFORMED_FUNCTION_CALL")
    assert advice_of(show(pair_of(ASKS, malformed))).text == "ask for the call again, with a simpler schema"
    if (CASES / "readings" / "deltas-differ.har").is_file():
        found = open_view(CASES / "readings" / "deltas-differ.har")
        assert advice_of(found).text == (
            "ask for the call again, and report both versions to the maintainers of the server")


@each_row(
    ("status", "body", "said"),
    [
        (401, {"type": "x", "message": "no"}, "check that the key"),
        (403, {"type": "x", "message": "no"}, "check that the key"),
        (400, {"type": "x", "message": "Incorrect API key provided: test"}, "check that the key"),
        (400, {"type": "x", "message": "API key not valid. Please pass a valid API key."}, "check that the key"),
        # LiteLLM's, about a call whose quoted arguments may hold any word
        (500, {"type": "api_error", "message": "Failed to parse tool call arguments for tool 'write' (adapter)."
               " Error: Unterminated string. Arguments: {\"path\": \"billing.md\", \"text\": \"The\napi key"},
         "raise max_tokens: the call quoted in the message"),
        (500, {"type": "api_error", "message": "Failed to parse tool call arguments for tool 'write'. Error: Expecting "
               "value. Arguments: {"}, "raise max_tokens: the call quoted in the message"),
        (500, {"type": "api_error", "message": "Failed to parse tool call arguments for tool 'write'. Error: Expecting "
               "value. Arguments: {path: 1}"}, "try again later"),
        (429, {"type": "insufficient_quota", "message": "You exceeded your current quota"}, "check the account's"),
        (402, {"type": "x", "message": "no"}, "check the account's"),
        (529, {"type": "overloaded_error", "message": "Overloaded"}, "try again later"),
        (429, {"type": "rate_limit_error", "message": "slow down"}, "try again later"),
        # OpenAI's and Groq's: no later time helps
        (429, {"code": "rate_limit_exceeded", "message": "Request too large for m-1 in organization o on tokens per "
               "min (TPM): Limit 30000, Requested 36000."}, "shorten the request or lower max_tokens"),
        (413, {"code": "rate_limit_exceeded", "message": "Request too large for model `m-1` on tokens per minute (TPM)"
               ": Limit 6000, Requested 7100. Upgrade at https://example.com/settings/billing"},
         "shorten the request or lower max_tokens"),
        (400, {"type": "invalid_request_error", "code": "tool_use_failed", "message": "Failed to call a function.",
               "failed_generation": "<function=f>{"}, "send the request again: the server refused what the model"),
        (400, {"type": "invalid_request_error", "code": "json_validate_failed", "message": "Failed to generate JSON."},
         "send the request again: the server refused what the model"),
        (413, {"code": "tokens_limit_reached", "message": "Request body too large for m-1. Max size: 8000 tokens."},
         "shorten the request: it is larger"),
        (404, {"type": "x", "message": "model: nothing"}, "check the model's name and the address"),
        (400, {"type": "x", "code": "model_not_found", "message": "no"}, "check the model's name"),
        (400, {"type": "x", "message": "The requested model 'm-9' does not exist."}, "check the model's name"),
        (400, {"type": "x", "message": "temperature is out of range"}, "change the request"),
    ],
)
def test_an_error_says_what_to_do_about_it(status, body, said) -> None:
    found = show(pair_of(ASKS, {"error": body}, status=status))
    assert found.turns[0].verdict.word == "ERROR"
    assert advice_of(found).text.startswith(said)


@each_row("said", [
    "terminated", "ECONNRESET", "socket hang up", "Connection reset by peer", "Request timed out.", "fetch failed",
    "network error", "Connection error."])
def test_a_lost_connection_is_asked_again(said: str, tmp_path: Path) -> None:
    """As pi writes an error of its client down: no status, and a message of the runtime."""
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Editing:"}], "api": "anthropic-messages",
              "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "error", "errorMessage": said,
              "usage": {"input": 6, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 7,
                        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}, "timestamp": 2}
    stamp = "2026-01-01T00:00:01Z"
    rows = [{"type": "session", "version": 3, "id": "s", "timestamp": stamp, "cwd": "/x"},
            {"type": "message", "id": "a1", "parentId": None, "timestamp": stamp, "message": {
                "role": "user", "content": [{"type": "text", "text": "edit it"}], "timestamp": 1}},
            {"type": "message", "id": "a2", "parentId": "a1", "timestamp": stamp, "message": answer}]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = open_view(path)
    assert found.turns[0].verdict.word == "ERROR"
    assert advice_of(found).text == "send the request again: the connection was lost"


def test_of_a_transcript_nobody_knows_what_was_asked() -> None:
    found = open_view(Path(samples()[17].path))
    for turn in found.turns:
        if turn.verdict.advice is not None:
            assert not turn.verdict.advice.live
            assert "live run" not in turn.verdict.advice.text


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_report_has_the_command_that_makes_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a b.jsonl"
    path.write_bytes(lines(*cut_text(*PARTS)))
    found = open_view(path)
    command = f"inspector replay '{path}' --set continuation_max_attempts=4"
    assert f"  run it: {command}\n" in text(found, read=ReadOptions([str(path)]))
    assert "run it" not in text(found)
    assert command_to_try(found, found.turns[0], ReadOptions([str(path)], "openai_chat", "vllm")) == (
        f"inspector replay '{path}' --api openai_chat --profile vllm --set continuation_max_attempts=4")


def test_the_report_has_the_command_that_asks_live() -> None:
    found = show(pair_of(ASKS, chat("The first", "length", tokens=20), max_tokens=20))
    asks = "  try it live: inspector replay s.har --set max_tokens=1024 --live --turn 1\n"
    assert asks in text(found, read=ReadOptions(["s.har"])), "the same values as the form of the app"
    found = show(*repair_turn())
    assert "try it live" not in text(found, read=ReadOptions(["s.har"]))


# -- what a live run is proposed under --------------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "tokens", "guess"), [(4_000, 4_000, "8000"), (64, 64, "1024"), (None, 900, "1800")])
def test_a_live_run_is_proposed_under_twice_the_cap_or_the_tokens_that_were_used(
    cap: int | None, tokens: int, guess: str
) -> None:
    entry = pair_of(ASKS, chat("The first part", "length", tokens=tokens), **({"max_tokens": cap} if cap else {}))
    advice = advice_of(show(entry))
    assert (advice.live, advice.guess, advice.set) == (True, {"max_tokens": guess}, None)


def test_no_smaller_cap_is_proposed_than_that_of_an_earlier_answer_of_the_turn() -> None:
    first, rest = "The first part is about water, ", "and the second is"
    found = show(pair_of(ASKS, chat(first, "length", tokens=4_096), max_tokens=4_096),
                  pair_of([*ASKS, assistant(first), user(HINT)], chat(rest, "length", tokens=256), max_tokens=256))
    assert len(found.turns) == 1
    assert advice_of(found).guess == {"max_tokens": "8192"}


def test_no_run_is_proposed_where_none_can_be_asked_or_nothing_may_be_raised() -> None:
    assert advice_of(show(pair_of(ASKS, chat("I cannot", "content_filter"), max_tokens=64))).guess is None


def test_a_page_in_place_of_an_answer_leads_to_what_answered() -> None:
    found = show(pair_of(ASKS, "<html>Sign in</html>"))
    assert advice_of(found).text == "look at what answered instead of the model: a proxy, a login page, another address"


# -- an empty answer ---------------------------------------------------------------------------------------------------

SENT = "send the request again with a short message that asks for an answer"


@each_row(("messages", "more", "begins"), [
    (ASKS, {}, SENT),
    (ASKS, {"tools": TOOLS}, SENT),
    (ASKS, {"tools": TOOLS, "tool_choice": "none"}, "the request forbids calls (tool_choice none): allow them"),
    ([*ASKS, assistant(None, call()), result()], {"tools": TOOLS}, SENT),
    ([*ASKS, assistant(None, call()), result()], {}, "the request offers no tools, although its history has calls"),
])
@each_row(("body", "word"), [
    (chat(""), "EMPTY ANSWER"),
    ({**chat(""), "choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "", "reasoning_content": "I should read the file."}}]}, "REASONING ONLY"),
])
def test_what_the_request_forbids_is_named_where_nothing_came(messages, more, begins, body, word):
    (turn,) = show(pair_of(messages, body, **more)).turns
    assert turn.verdict.word == word
    assert turn.verdict.advice.text.startswith(begins)
    assert SENT in turn.verdict.advice.text


def test_of_a_recorder_that_may_leave_out_tools_nothing_is_said_of_the_request():
    history = [*ASKS, assistant(None, call()), result()]
    exchange = show(pair_of(history, chat(""))).responses[0].exchange
    assert about_silence(SimpleNamespace(exchange=exchange)).startswith("the request offers no tools")
    assert about_silence(SimpleNamespace(exchange=replace(exchange, recorder="langfuse"))).startswith(SENT)


def test_a_rejected_call_needs_nothing_if_the_agent_answered_it() -> None:
    made = ToolCall("c1", "write", "{}", True)
    refused = Verdict(made, Admission.REJECTED, REFUSED, "the user refused it: it did not run")
    assert about_rejected(refused) == "nothing to change: the agent already answered the call with this error"
    assert about_rejected(refused._replace(rule="gate.schema")).startswith("send the error back")
