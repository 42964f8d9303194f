"""Every verdict has a session that deserves it, and says what happened and what to change."""

from __future__ import annotations

import json
import sys

import pytest

from inspector.commands import open_view
from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report import filters
from inspector.report.facts import TurnFacts, View, view
from inspector.report.lines import calls, header
from inspector.report.lines.merged import merged_sheet
from inspector.report.lines.spans import Tone, text_of
from inspector.report.lines.steps import Outline, glyph_of
from inspector.report.verdict import ROWS
from inspector.sessions import open_paths
from inspector.sessions.folders import samples
from inspector.sessions.native import BY_US, PRODUCER, SessionWriter, session_bytes
from loop_core.turn.history import hint_message
from loop_core.turn.limits import Limits
from loop_core.turn.presets import PI_PRESENCE
from loop_core.turn.state import State
from loop_core.values import Severity, Stop
from tests.scenes import transcripts as agents
from tests.scenes.bodies import call as called
from tests.scenes.bodies import chat_body, chat_stream, llama_responses
from tests.scenes.recordings import (
    ASKS,
    CHAT,
    CUT,
    GEMINI,
    HINT,
    MESSAGE_TOOLS,
    MESSAGES,
    PARTS,
    RESPONSES,
    TOOLS,
    WHOLE,
    assistant,
    bodiless_har,
    call,
    chat,
    cut_call_ran,
    cut_stream,
    cut_text,
    exchange,
    lines,
    message,
    pair_of,
    repair_turn,
    result,
    rounds_of_tools,
    show,
    user,
)
from tests.scenes.rows import each_row

UNKNOWN = "only a live run can show what is enough"
KEY = "check that the key is set, valid, and allowed to use this model"


def only(shown_: View) -> TurnFacts:
    (turn,) = shown_.turns
    return turn


def verdict(*exchanges):
    """The verdict on a session of one turn: its word, how bad it is, its sentence and its advice."""
    return only_verdict(show(*exchanges))


def only_verdict(shown_: View):
    """The same of a session that is open."""
    found = only(shown_).verdict
    return found.word, found.severity, found.sentence, found.advice.text if found.advice else ""


def alone(body, **more):
    return verdict(pair_of(ASKS, body, **more))


def awaiting(**more):
    """A turn whose only answer asks for a tool."""
    return pair_of(ASKS, chat(None, "tool_calls", call(WHOLE)), tools=TOOLS, **more)


def contents(*parts, reason="STOP", **more):
    """A Gemini body."""
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    return {"candidates": [{"index": 0, "finishReason": reason, **content}], "modelVersion": "gemini-2.5-pro",
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 7, "totalTokenCount": 16}, **more}


def ask_gemini(body, status=200):
    return exchange({"contents": [{"role": "user", "parts": [{"text": "write"}]}]}, body, url=GEMINI, status=status)


# -- a call was cut ---------------------------------------------------------------------------------------------------


def test_an_agent_that_runs_a_cut_call_is_the_worst_there_is():
    word, severity, sentence, advice = verdict(*cut_call_ran())
    assert (word, severity) == ("CUT CALL RUN", Severity.ERROR)
    assert sentence == (
        f'openai_chat cut write_file at character {len(CUT)} of its arguments ("length", 40 of 40 tokens); '
        "the agent ran it"
    )
    assert advice == f"never run a held call; raise max_tokens; {UNKNOWN}"


def test_a_cut_call_that_nobody_went_on_from_is_held():
    body = message([{"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}], "max_tokens", 40)
    word, severity, sentence, advice = alone(body, url=MESSAGES, max_tokens=40, tools=MESSAGE_TOOLS)
    assert (word, severity) == ("CALL HELD", Severity.ERROR)
    assert sentence.startswith("anthropic_messages cut write_file")
    assert '("max_tokens", 40 of 40 tokens)' in sentence
    assert advice == f"raise max_tokens; {UNKNOWN}"


@each_row(
    ("arguments", "said"),
    [
        (CUT, f"cut write_file at character {len(CUT)} of its arguments"),
        ("", "cut write_file before its arguments"),
        ("{'path': 1}", "sent write_file with invalid arguments"),
        (WHOLE, "cut the batch of write_file, whose own arguments parse"),
    ],
)
def test_how_a_call_was_cut_is_said(arguments, said):
    word, _, sentence, _ = alone(chat(None, "length", call(arguments), tokens=40), tools=TOOLS, max_tokens=40)
    assert word == "CALL HELD"
    assert sentence == f'openai_chat {said} ("length", 40 of 40 tokens)'


@each_row(("end", "word", "said"), [
    ([{"type": "content_block_stop", "index": 0}], "INTERRUPTED", "; its call write_file is held: "),
    ([], "CALL HELD", "never closed write_file, whose arguments parse as they stand"),
])
def test_a_stream_that_broke_off_after_a_whole_call_was_interrupted(end, word, said):
    """Only the end of its block says that the arguments are all that was to come."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": WHOLE}
    events = [{"type": "message_start", "message": message([], None)},
              {"type": "content_block_start", "index": 0, "content_block": block},
              {"type": "content_block_delta", "index": 0, "delta": piece}, *end]
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    found, severity, sentence, _ = alone(body, url=MESSAGES, max_tokens=40, tools=MESSAGE_TOOLS)
    assert (found, severity) == (word, Severity.ERROR)
    assert said in sentence


@each_row(("word", "cut", "said"), [
    ("length", CUT, f"cut write_file (call 1 of 2) at character {len(CUT)} of its arguments"),
    ("tool_calls", CUT, f"cut write_file (call 1 of 2) at character {len(CUT)} of its arguments"),
    ("tool_calls", "{'path': 1}", "sent write_file (call 1 of 2) with invalid arguments"),
    ("length", WHOLE, "cut the batch of write_file (call 2 of 2)"),
])
def test_of_a_batch_the_call_is_named_that_holds_the_others(word, cut, said):
    both = call(cut), call(WHOLE.replace("a.md", "b.md"), "call_f6g7h8i9j0")
    _, _, sentence, _ = alone(chat(None, word, *both, tokens=40), tools=TOOLS, max_tokens=40)
    assert said in sentence
    ran = [*ASKS, assistant(None, *both), result(), result(key="call_f6g7h8i9j0")]
    named, _, sentence, _ = verdict(pair_of(ASKS, chat(None, word, *both, tokens=40), tools=TOOLS, max_tokens=40),
                                    pair_of(ran, chat("Done."), tools=TOOLS, max_tokens=40))
    assert named == ("CALL HELD" if "invalid" in said else "CUT CALL RUN")
    assert said in sentence


def test_a_spent_budget_alone_only_may_have_cut_a_batch():
    told = alone(chat(None, "tool_calls", call(WHOLE), tokens=40), tools=TOOLS, max_tokens=40)[2]
    assert told == ('openai_chat may have cut the batch of write_file, whose own arguments parse ("tool_calls" though '
                    "it may be cut, 40 of 40 tokens)")


def test_a_spent_budget_alone_only_may_have_cut_a_text_or_a_call_that_came_parsed():
    called = message([{"type": "tool_use", "id": "t", "name": "write_file", "input": {"path": "a"}}], "tool_use", 40)
    told = alone(called, url=MESSAGES, tools=MESSAGE_TOOLS, max_tokens=40)[2]
    assert told.startswith("anthropic_messages may have cut write_file, whose arguments were recorded already parsed")
    seen = only_verdict(show(llama_responses(12, 13, 13)))
    assert (seen[0], seen[2]) == (
        "TRUNCATED", 'the provider may have cut the answer: openai_responses (llama_cpp) ended with "completed" though '
                     "it may be cut, 13 of 13 tokens")


def test_the_tokens_at_the_beginning_of_a_stream_are_not_told_as_those_of_an_answer_that_broke_off():
    begun = {**message([], None), "usage": {"input_tokens": 9, "output_tokens": 1}}
    block = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}
    events = [{"type": "message_start", "message": begun},
              {"type": "content_block_start", "index": 0, "content_block": block},
              {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": CUT}}]
    stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    told = alone(stream, url=MESSAGES, max_tokens=400, stream=True, tools=MESSAGE_TOOLS)
    assert told[2].endswith(f"at character {len(CUT)} of its arguments (no stop reason, cap 400)")
    last = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 400}}
    told = alone(f"{stream}data: {json.dumps(last)}\n\n", url=MESSAGES, max_tokens=400, stream=True)
    assert told[2].endswith('("max_tokens", 400 of 400 tokens)')


def test_a_clean_word_after_that_of_a_cut_is_not_quoted_as_if_the_answer_were_whole():
    later = cut_stream("All").replace("null", '"length"') + cut_stream(" of it").replace("null", '"stop"')
    assert alone(f"{later}data: [DONE]\n\n", stream=True)[2].endswith('ended with "stop" though it was cut')
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "write_file", "arguments": CUT,
            "status": "incomplete"}
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [item]}
    assert alone(body, url=RESPONSES)[2].endswith('("completed" though it was cut)')


def test_where_arguments_end_is_said_in_characters_in_every_view():
    cut = '{"path": "a.md", "content": "Äpfel, Öl, Übermut'
    seen = show(pair_of([user("Write it.")], chat(None, "length", call(cut), tokens=40), tools=TOOLS, max_tokens=40))
    views = [seen.turns[0].verdict.sentence, *seen.responses[0].verdicts[0].why.splitlines(),
             *(text_of(sheet.line(at)) for sheet in (
                 calls.calls(seen, Outline(seen).blocks[0], seen.responses[0]),
                 merged_sheet(seen, Outline(seen).blocks[0], len(seen.steps) - 1))
               for at in range(len(sheet)))]
    said = [words for words in views if "character" in words or "byte" in words]
    assert len(cut) != len(cut.encode())
    assert len(said) >= 4
    assert all(f"character {len(cut)}" in words or f"{len(cut)} characters" in words for words in said), said


@each_row(("reason", "arguments"), [("length", CUT), ("length", WHOLE), ("stop", CUT),
                                                   ("m" * 3000, CUT), ("m" * 3000, WHOLE)])
def test_a_name_or_a_word_as_long_as_a_page_leaves_the_sentence_readable(reason, arguments):
    _, _, sentence, _ = alone(chat(None, reason, call(arguments, name="n" * 3000), tokens=40), tools=TOOLS)
    assert f"{'n' * 80}…" in sentence or f'"{"m" * 80}…"' in sentence
    assert len(sentence) < 500


def test_a_call_sent_as_an_object_cannot_show_its_cut():
    part = {"functionCall": {"name": "write_file", "args": {"path": "a.md"}}}
    word, _, sentence, _ = verdict(ask_gemini(contents(part, reason="MAX_TOKENS")))
    assert word == "CALL HELD"
    assert "cut write_file, whose arguments were recorded already parsed and so look complete" in sentence


def test_a_router_that_says_tool_calls_over_a_cut_call_is_not_believed():
    word, _, sentence, _ = alone(chat(None, "tool_calls", call(CUT)), tools=TOOLS)
    assert word == "CALL HELD"
    assert '("tool_calls" though it was cut' in sentence
    assert "though" not in alone(chat(None, "length", call(CUT)), tools=TOOLS)[2]


def test_a_call_that_the_providers_own_parser_refused():
    word, severity, sentence, advice = verdict(ask_gemini(contents(reason="MALFORMED_FUNCTION_CALL")))
    assert (word, severity) == ("MALFORMED CALL", Severity.ERROR)
    assert '"MALFORMED_FUNCTION_CALL"' in sentence
    assert advice == "ask for the call again, with a simpler schema"


def test_a_call_that_the_end_of_the_answer_does_not_authorise_is_not_run():
    empty = {"id": "call_1", "type": "custom", "custom": {"name": "shell"}}  # free-form, and no input came
    word, severity, sentence, advice = alone(chat("There.", "stop", empty))
    assert (word, severity) == ("CALL NOT RUN", Severity.ERROR)
    assert "its call shell is held" in sentence
    assert "it must not run as it is" in advice


def test_a_call_that_its_schema_refuses_is_rejected_whatever_word_ended_the_answer():
    wrong = json.dumps({"path": 5})  # its schema wants a text, and content
    for reason in ("stop", "tool_calls"):
        word, severity, sentence, advice = alone(chat("There.", reason, call(wrong)), tools=TOOLS)
        assert (word, severity) == ("CALL REJECTED", Severity.WARNING)
        assert "its call write_file is rejected" in sentence
        assert "send the error back" in advice


def test_a_call_that_the_request_forbade_is_rejected_and_no_error_need_go_back():
    word, severity, sentence, advice = alone(chat("There.", "tool_calls", call(WHOLE)), tools=TOOLS, tool_choice="none")
    assert (word, severity) == ("CALL REJECTED", Severity.WARNING)
    assert "the request forbids tool calls (tool_choice none)" in sentence
    assert advice.startswith("do not run the call; let tool_choice allow it")


def test_a_cut_call_that_came_whole_when_asked_again_needs_nothing():
    word, severity, sentence, advice = verdict(*repair_turn())
    assert (word, severity, advice) == ("CALL REPAIRED", Severity.INFO, "")
    assert sentence == (
        'openai_chat (openai) sent a call that was held ("length", 40 of 40 tokens); asked again, it sent the complete '
        "call")


# -- text was cut -----------------------------------------------------------------------------------------------------


def test_a_cut_answer_that_the_agent_took_for_whole():
    text = "The first part is about water, and"
    after = [*ASKS, assistant(text), user("Thanks. Now book a table for two.")]
    found = show(pair_of(ASKS, chat(text, "length", tokens=20), max_tokens=20),
                  pair_of(after, chat("Booked."), max_tokens=20))
    first, second = (turn.verdict for turn in found.turns)
    assert (first.word, first.severity) == ("TRUNCATED, ANSWER LOST", Severity.ERROR)
    assert first.sentence.endswith('ended with "length", 20 of 20 tokens; the agent went on without the rest')
    assert first.advice.text == f"raise max_tokens; {UNKNOWN}"
    assert second.word == "COMPLETE"


def test_a_turn_that_is_given_another_text_was_never_asked():
    """Not even where the call that came before the edit was held: nothing recorded decides such a turn."""
    edited = settings_of({"edit.1.1": "Write something else."}, Settings())
    turn = only(show(pair_of(ASKS, chat("Here.", "length", call(CUT))), settings=edited))
    assert (turn.verdict.word, turn.verdict.severity) == ("EDITED, NOT ASKED", Severity.WARNING)
    assert turn.verdict.sentence == (
        "openai_chat (openai) never received this input: it was edited, so no recorded answer belongs to it")
    assert turn.verdict.advice is not None
    assert turn.verdict.advice.text == "run the turn live (answers from: live; or --live)"


def test_the_turn_of_a_transcript_is_not_said_to_run_live():
    """Its request is none that could be sent: the form of a live run refuses it."""
    found = open_case(open_paths(["sample_sessions/18-claude-code-cut-writes.jsonl"]))
    turn = view(replay(found, settings_of({"edit.2.1": "Write something else."}, Settings()))).turns[1]
    assert turn.verdict.word == "EDITED, NOT ASKED"
    assert turn.verdict.advice is not None
    assert turn.verdict.advice.text == (
        "only a new live turn can show the answer; a transcript does not hold the request to be sent")


def test_a_policy_that_runs_a_cut_call_is_named():
    lied = pair_of(ASKS, chat(None, "tool_calls", call(CUT), tokens=9), max_tokens=9)
    turn = only(show(lied, settings=Settings(policy=PI_PRESENCE)))
    assert turn.verdict.word == "CALL HELD"
    assert turn.verdict.sentence.endswith("; policy pi-presence runs such a call, here it was not run")
    assert "policy" not in only(show(lied)).verdict.sentence


def test_a_run_that_asks_for_what_was_never_recorded_says_nothing_of_what_the_agent_did():
    """At a larger budget the rest of a cut call is unknown: such a run has no answer, and ran nothing."""
    recorded = only(show(*cut_call_ran()))
    assert recorded.verdict.word == "CUT CALL RUN"
    turn = only(show(*cut_call_ran(), settings=settings_of({"max_tokens": "900", "simulate": "yes"}, Settings())))
    assert (turn.verdict.word, turn.verdict.severity) == ("UNANSWERED", Severity.WARNING)
    assert turn.verdict.sentence == (
        "openai_chat (openai): the recording has no answer to the first request of this run")
    assert turn.verdict.advice is not None
    assert turn.verdict.advice.text == "run the turn live (answers from: live; or --live)"


def test_a_cut_answer_at_the_end_of_the_recording():
    word, severity, sentence, advice = alone(chat("The first", "length", tokens=20), max_tokens=20)
    assert (word, severity) == ("TRUNCATED", Severity.ERROR)
    assert sentence.endswith('ended with "length", 20 of 20 tokens')
    assert advice == f"raise max_tokens; {UNKNOWN}"


def test_what_thinking_took_is_said():
    usage = {"prompt_tokens": 9, "completion_tokens": 100, "total_tokens": 109,
             "completion_tokens_details": {"reasoning_tokens": 90}}
    _, _, sentence, advice = alone(chat("The", "length", usage=usage), max_tokens=100)
    assert sentence.endswith('ended with "length", 100 of 100 tokens, 90 of them on reasoning')
    assert advice == f"raise max_tokens; {UNKNOWN}"
    _, _, sentence, advice = alone(chat(None, "length", usage=usage), max_tokens=100)
    assert sentence.endswith('ended with "length", 100 of 100 tokens, all spent on reasoning')
    assert advice == f"raise max_tokens or lower the reasoning effort; {UNKNOWN}"


def test_nothing_is_invented_where_no_count_was_recorded():
    _, _, sentence, advice = alone(chat("The", "length", tokens=None))
    assert sentence.endswith('ended with "length"')
    assert advice == f"set max_tokens: the request leaves it to the server; {UNKNOWN}"
    _, _, sentence, advice = alone(chat("The", "length", tokens=None), max_tokens=300)
    assert sentence.endswith('ended with "length", cap 300')
    assert advice == f"raise max_tokens; {UNKNOWN}"


def test_a_limit_that_the_recorded_agent_did_not_have():
    word, severity, sentence, advice = verdict(*cut_text(*PARTS))
    assert (word, severity) == ("LIMIT REACHED", Severity.WARNING)
    assert sentence == ("this loop's limit continuation_max_attempts (3 of 3) ended the turn: openai_chat (openai) was "
                        "cut 4 times, and the recorded agent finished it with 4 continuations")
    assert advice == "raise continuation_max_attempts to 4: a replay of the recording then completes the turn"


def test_one_reads_whether_the_provider_or_this_loop_ended_the_answer():
    """TRUNCATED begins with the provider's cut, LIMIT REACHED with the limit of this loop."""
    cut = verdict(*cut_text(*PARTS[:4], last="length", max_tokens=10))
    assert cut[0] == "TRUNCATED"
    assert cut[2] == ('the provider cut the answer: openai_chat (openai) ended with "length", 10 of 10 tokens; '
                      "this loop's limit continuation_max_attempts (3 of 3) ended the turn")
    once = only_verdict(show(*cut_text(*PARTS[:2]), settings=Settings(Limits(continuation_max_attempts=0))))
    assert once[0] == "LIMIT REACHED"
    assert once[2] == ("this loop's limit continuation_max_attempts (0 of 0) ended the turn: openai_chat (openai) was "
                       "cut 1 time, and the recorded agent finished it with 1 continuation")
    below = verdict(pair_of(ASKS, chat("The", "length", tokens=40), max_tokens=200))
    assert below[2].endswith('openai_chat (openai) ended with "length", cut by the provider at 40 of 200 tokens')
    assert "the provider cut the answer" not in below[2], "once is enough"


def test_a_token_budget_that_the_recorded_agent_did_not_have():
    # The cap is 20, so the budget is 4 x 20; two answers of 40 use it up, and the third was recorded.
    word, severity, sentence, advice = verdict(*cut_text(*PARTS[:2], PARTS[-1], tokens=40, max_tokens=20))
    assert (word, severity) == ("LIMIT REACHED", Severity.WARNING)
    assert "continuation_max_total_completion_tokens (80 of 80) ended the turn" in sentence
    # The third answer is whole, and has 5 tokens: it is the answer where the 80 of the first two leave room for them.
    assert advice == ("raise continuation_max_total_completion_tokens to 85: a replay of the recording "
                      "then completes the turn")


def test_a_call_that_was_asked_for_beyond_the_limit_of_tool_steps_reaches_it():
    exchanges = rounds_of_tools(11)
    assert verdict(*exchanges)[0] == "COMPLETE SO FAR", "the recorded loop allowed as many"
    settings = Settings(explicit=frozenset({"max_tool_steps"}))
    assert only_verdict(show(*exchanges[:10], settings=settings))[0] == "COMPLETE SO FAR"
    word, severity, sentence, _ = only_verdict(show(*exchanges, settings=settings))
    assert (word, severity) == ("LIMIT REACHED", Severity.WARNING)
    assert sentence == ("this loop's limit max_tool_steps (10 of 10) ended the turn: openai_chat (openai) asked for "
                        "tools")


def test_attempts_that_end_in_a_cut_are_truncated_and_no_limit_would_have_helped():
    assert verdict(*cut_text(*PARTS, last="length"))[0] == "TRUNCATED"


def test_a_text_that_was_cut_and_completed():
    word, severity, sentence, advice = verdict(*cut_text(PARTS[0], PARTS[-1]))
    assert (word, severity, advice) == ("CUT, COMPLETED", Severity.INFO, "")
    assert '"length", 10 tokens' in sentence


def test_a_call_that_was_run_after_an_interruption_asks_for_no_larger_budget():
    delta = {"role": "assistant", "tool_calls": [{"index": 0, **call(WHOLE)}]}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-1",
             "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    history = [*ASKS, assistant(None, call(WHOLE)), result()]
    word, _, sentence, advice = verdict(pair_of(ASKS, f"data: {json.dumps(chunk)}\n\n", tools=TOOLS),
                                        pair_of(history, chat("It is written."), tools=TOOLS))
    assert word == "CALL HELD", "the arguments are whole: nothing shows that the call was cut"
    assert "never closed write_file, whose arguments parse as they stand (no stop reason)" in sentence
    assert advice == "send the request again; nothing shows that a budget cut this answer"


def test_a_held_call_in_a_full_context_wants_a_shorter_history():
    body = message([{"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}],
                   "model_context_window_exceeded")
    word, _, _, advice = alone(body, url=MESSAGES, max_tokens=4000, tools=MESSAGE_TOOLS)
    assert (word, advice) == ("CALL HELD", "shorten the history; another continuation cannot succeed")


def test_a_call_without_arguments_under_a_clean_end_wants_a_declaration_that_says_so():
    word, _, sentence, advice = alone(chat(None, "tool_calls", call("")), tools=TOOLS)
    assert (word, advice) == (
        "CALL HELD", "ask for the call again; if the tool takes no arguments, declare it with empty properties")
    assert "sent write_file without arguments" in sentence


def test_invalid_arguments_under_a_clean_end_want_another_call_and_no_budget():
    word, _, sentence, advice = alone(chat(None, "tool_calls", call("{'path': 1}")), tools=TOOLS)
    assert (word, advice) == ("CALL HELD", "ask for the call again, with a simpler schema")
    assert "sent write_file with invalid arguments" in sentence


def test_the_call_that_was_run_is_named_and_not_a_later_one():
    late = call(CUT, "call_f6g7h8i9j0", "append_file")
    history = [*ASKS, assistant(None, call(CUT)), result()]
    word, _, sentence, _ = verdict(pair_of(ASKS, chat(None, "length", call(CUT), tokens=40), tools=TOOLS),
                                   pair_of(history, chat(None, "length", late, tokens=40), tools=TOOLS))
    assert word == "CUT CALL RUN"
    assert "cut write_file at character" in sentence
    assert "append_file" not in sentence


def test_a_policy_that_takes_a_cut_answer_for_its_end_gives_no_tick():
    cut = pair_of(ASKS, chat("The first", "length", tokens=20), max_tokens=20)
    found = show(cut, settings=Settings(policy=PI_PRESENCE))
    assert only(found).terminal == "completed"  # so the policy believes
    assert (only(found).verdict.word, only(found).verdict.severity) == ("TRUNCATED", Severity.ERROR)


# -- the other ends ---------------------------------------------------------------------------------------------------


def test_a_full_context_wants_a_shorter_history():
    body = message([{"type": "text", "text": "The"}], "model_context_window_exceeded")
    word, severity, _, advice = alone(body, url=MESSAGES, max_tokens=4000)
    assert (word, severity) == ("CONTEXT FULL", Severity.ERROR)
    assert "shorten the history" in advice


def test_a_stream_without_an_end():
    stream = cut_stream("The first")
    word, severity, sentence, advice = alone(stream)
    assert (word, severity) == ("INTERRUPTED", Severity.ERROR)
    assert f"without a stop reason ({len(stream.encode())} bytes)" in sentence
    assert advice == "send the request again; nothing shows that a budget cut this answer"


def test_a_stream_without_an_end_whose_usage_is_the_cap_was_cut_by_it():
    usage = {"prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29}
    last = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-1", "choices": [], "usage": usage}
    stream = cut_stream("The first") + f"data: {json.dumps(last)}\n\n"
    word, _, _, advice = alone(stream, max_tokens=20)
    assert word == "INTERRUPTED"
    assert advice == f"raise max_tokens; {UNKNOWN}"


@each_row(
    ("status", "kind", "advice"),
    [(529, "overloaded_error", "try again later"), (401, "authentication_error", KEY), (403, "permission_error", KEY),
     (400, "invalid_request_error", "change the request"),
     (404, "not_found_error", "check the model's name and the address"),
     (402, "billing_error", "check the account's quota and billing, or try again later")],
)
def test_an_error_says_whether_to_try_again(status, kind, advice):
    body = {"type": "error", "error": {"type": kind, "message": "Not now"}}
    word, severity, sentence, said = alone(body, url=MESSAGES, status=status, max_tokens=10)
    assert (word, severity, said) == ("ERROR", Severity.ERROR, advice)
    assert sentence.endswith(f"failed: HTTP {status}, Not now")


def test_a_long_error_is_cut_to_a_line():
    body = {"error": {"message": "x" * 5000, "type": "invalid_request_error", "code": None, "param": None}}
    assert len(alone(body, status=400)[2]) < 200


def test_a_filtered_answer():
    word, severity, sentence, advice = alone(chat("The", "content_filter"))
    assert (word, severity) == ("BLOCKED", Severity.WARNING)
    assert "content_filter" in sentence
    assert "a continuation will not help" in advice


def test_a_word_that_no_table_knows():
    word, severity, sentence, advice = alone(chat("The", "entropy"))
    assert (word, severity) == ("UNKNOWN REASON", Severity.WARNING)
    assert ('"entropy"' in sentence, advice) == (True, "report the word")  # the server is known


def test_a_body_that_a_browser_left_out_is_not_recorded_and_never_truncated():
    found = only(show(data=bodiless_har())).verdict
    assert (found.word, found.severity) == ("NOT RECORDED", Severity.WARNING)
    assert "the body was not recorded" in found.sentence
    assert "proxy" in found.advice.text


def test_a_call_that_a_background_response_had_begun_was_not_asked_for_again():
    def fetched(status, arguments):
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": arguments}
        return {"id": "resp_a", "object": "response", "status": status, "background": True, "output": [item]}

    poll = exchange({}, fetched("completed", "{}"), url=RESPONSES + "/resp_a")
    del poll["request"]["body"]
    asked = {"model": "m", "input": "look", "background": True}
    word, *_ = verdict(exchange(asked, fetched("in_progress", '{"'), url=RESPONSES), poll)
    assert word == "COMPLETE SO FAR"


def test_a_pause_wants_to_be_resumed():
    body = message([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}],
                   "pause_turn")
    word, severity, sentence, advice = alone(body, url=MESSAGES, max_tokens=10)
    assert (word, severity) == ("PAUSED", Severity.WARNING)
    assert "pause_turn" in sentence
    assert advice == "send the response back unchanged"


def test_a_cancelled_response():
    body = {"id": "resp_1", "object": "response", "status": "cancelled", "model": "gpt-5", "output": [], "usage": None,
            "error": None, "incomplete_details": None}
    word, severity, _, advice = verdict(exchange({"model": "gpt-5", "input": "hi"}, body, url=RESPONSES))
    assert (word, severity, advice) == ("CANCELLED", Severity.WARNING, "nothing to change")


@each_row(("end", "status", "data", "word"), [
    ("reset", None, "", "NO ANSWER"), ("timeout", None, "", "NO ANSWER"), ("aborted", None, "", "NO ANSWER"),
    ("reset", 200, "", "INTERRUPTED"), ("reset", None, "data: {}\n\n", "INTERRUPTED"), ("eof", 200, "", "INTERRUPTED"),
])
def test_a_request_that_nobody_answered_is_no_stream_that_broke(end, status, data, word):
    asks = {"model": "m", "messages": [user("hi")], "stream": True}
    records = [{"type": "request", "id": "r0", "api": "openai_chat", "url": CHAT, "body": asks}]
    records += [] if status is None else [{"type": "response", "request": "r0", "status": status, "headers": []}]
    records += [{"type": "bytes", "request": "r0", "text": data}] if data else []
    found = only(show(data=session_bytes([*records, {"type": "end", "request": "r0", "end": end}]))).verdict
    assert (found.word, found.severity) == (word, Severity.ERROR)
    assert ("did not answer the request" in found.sentence) is (word == "NO ANSWER")


def test_a_failure_without_a_body_is_not_given_words():
    asks = {"model": "m", "messages": [user("hi")]}
    records = [{"type": "request", "id": "r0", "api": "openai_chat", "url": CHAT, "body": asks},
               {"type": "response", "request": "r0", "status": 503, "headers": []},
               {"type": "end", "request": "r0", "end": "eof"}]
    found = only(show(data=session_bytes(records))).verdict
    assert found.word == "ERROR"
    assert found.sentence.endswith("failed: HTTP 503, without a message")


def test_an_answer_of_which_a_frame_could_not_be_read_is_not_whole():
    head = {"id": "c", "object": "chat.completion.chunk", "model": "m-1"}
    said = [json.dumps({**head, "choices": [{"index": 0, "delta": {"content": text}}]})
            for text in ("The lock was ", "never ", "released.")]
    end = json.dumps({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})

    def frames_verdict(*frames):
        return alone("".join(f"data: {frame}\n\n" for frame in (*frames, end, "[DONE]")))

    assert frames_verdict(*said)[0] == "COMPLETE"
    word, severity, sentence, advice = frames_verdict(said[0], said[1][:-9], said[2])
    assert (word, severity) == ("GAP IN THE ANSWER", Severity.ERROR)
    assert sentence.endswith("one of its frames could not be read, so a part of the answer is missing")
    assert advice == "send the request again; Wire shows the frame"
    assert frames_verdict(said[0], "ping", "[HEARTBEAT]", *said[1:])[0] == "COMPLETE"
    assert frames_verdict(said[1][:-9])[0] == "GAP IN THE ANSWER", "nothing else came"
    twice = end.replace('"finish_reason": "stop"', '"finish_reason": "length", "finish_reason": "stop"')
    word, _, sentence, _ = frames_verdict(*said, twice)
    assert word == "GAP IN THE ANSWER"
    assert sentence.endswith("a JSON object in it has a duplicate key: nothing shows which of the two values is meant")


@each_row("end", ["reset", "timeout", "eof", "aborted"])
@each_row(("reason", "word"), [("stop", "COMPLETE"), ("tool_calls", "COMPLETE SO FAR")])
def test_a_complete_answer_says_that_its_connection_broke_after_it(end, reason, word):
    """Gemini CLI ended with an error at such a break: the answer is whole, and the agent stopped all the same."""
    calls = [called("look", "{}")] if reason == "tool_calls" else []
    records = [{"loop_inspector_session": 1},
               {"type": "request", "id": "r0", "api": "openai_chat", "url": "http://127.0.0.1:1/v1/chat/completions",
                "method": "POST", "body": {"model": "m", "messages": [{"role": "user", "content": "go"}]}},
               {"type": "response", "request": "r0", "status": 200, "headers": []},
               {"type": "bytes", "request": "r0", "text": chat_body("Done.", reason, *calls)},
               {"type": "end", "request": "r0", "end": end}]
    found = only(show(data=session_bytes(records))).verdict
    assert found.word == word
    assert ("then its connection broke" in found.sentence) == (end in ("reset", "timeout"))
    damaged = only(show(data=session_bytes([*records[:-1], {**records[-1], "end": "damaged"}]))).verdict
    assert damaged.word == ("CALL HELD" if calls else "GAP IN THE ANSWER")
    assert "but the answer does not match its checksum, so any part of it may be wrong" in damaged.sentence


def test_a_call_beside_a_frame_that_could_not_be_read_is_held_for_that():
    head = {"id": "c", "object": "chat.completion.chunk", "model": "m-1"}
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    frames = [json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": word}]})
              for delta, word in (({"content": "I look."}, None), ({"tool_calls": [call]}, None), ({}, "tool_calls"))]
    sent = (frames[0][:-9], *frames[1:], "[DONE]")
    word, _, sentence, advice = alone("".join(f"data: {frame}\n\n" for frame in sent))
    assert word == "CALL HELD"
    assert "sent look, but one of its frames could not be read, so a part of the answer is missing" in sentence
    assert advice == "ask for the call again; Wire shows the frame that was not read"


def test_a_lost_frame_counts_for_the_answer_that_lost_it_alone():
    """The same request was sent twice; what became of the second answer decides."""
    def verdict_of(*bodies):
        records = [{"loop_inspector_session": 1}]
        for at, body in enumerate(bodies):
            records += [{"type": "request", "id": f"r{at}", "api": "openai_chat", "url": CHAT, "method": "POST",
                         "at": f"2026-03-01T10:0{at}:00Z", "body": {"model": "m", "messages": [user("go")]}},
                        {"type": "response", "request": f"r{at}", "status": 200, "headers": []},
                        {"type": "bytes", "request": f"r{at}", "text": body},
                        {"type": "end", "request": f"r{at}", "end": "eof", "ms": 5}]
        (turn,) = show(data=session_bytes(records)).turns
        return turn.verdict

    call, lost = called("look", "{}"), 'data: {"choices": [\n\n'
    delta = {"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}, "finish_reason": "tool_calls"}
    text = lost + chat_stream("I look.")
    asks_for = f"{lost}data: {json.dumps({'choices': [delta]})}\n\ndata: [DONE]\n\n"
    assert verdict_of(text, chat_stream("Done.")).word == "RETRIED"
    assert verdict_of(chat_body(""), text).word == "GAP IN THE ANSWER"
    after_call = verdict_of(asks_for, text)
    assert (after_call.word, "could not be read" in after_call.sentence) == ("GAP IN THE ANSWER", True)
    malformed = verdict_of(asks_for, chat_body("", "malformed_function_call", call))
    assert (malformed.word, "could not be read" in malformed.sentence) == ("CALL HELD", False)
    assert malformed.advice.text == "ask for the call again, with a simpler schema"


def test_a_simulated_budget_that_cuts_and_is_not_seen():
    """mistral.rs says `completed` for a cut answer too, and whether its reasoning counts under the cap is not known."""
    thought, cut = llama_responses(12, 13, 100, thought=1), Settings(max_tokens=5, simulate=True, profile="mistral_rs")
    word, severity, sentence, advice = only_verdict(show(thought, settings=cut))
    assert (word, severity) == ("CUT UNSEEN", Severity.WARNING)
    assert sentence.startswith("SIMULATED: ")
    assert "but this budget cuts its answer, and nothing that the server sends shows it" in sentence
    assert advice == "use a larger max_tokens: no loop can see this cut"
    assert only_verdict(show(thought, settings=Settings(max_tokens=64, simulate=True)))[0] == "COMPLETE"
    seen = only_verdict(show(llama_responses(12, 13, 100), settings=Settings(max_tokens=5, simulate=True)))
    assert seen[0] == "CUT, COMPLETED", "where every token counts under it, the loop goes on"


def test_a_whole_answer():
    word, severity, sentence, advice = alone(chat("All of it."), max_tokens=50)
    assert (word, severity, advice) == ("COMPLETE", Severity.INFO, "")
    assert sentence.endswith('ended with "stop", 7 of 50 tokens')


def test_a_failure_that_was_sent_again_with_success_is_told_and_no_trouble():
    down = {"error": {"message": "Overloaded", "type": "server_error"}}
    (turn,) = show(
        pair_of([user("hi")], down, status=503, max_tokens=50), pair_of([user("hi")], chat("All of it."), max_tokens=50)
    ).turns
    assert (turn.verdict.word, turn.verdict.severity) == ("RETRIED", Severity.INFO)
    assert turn.verdict.sentence.endswith('asked again after a failure and ended with "stop", 7 of 50 tokens')


def test_a_resumption_that_was_sent_again_with_success_ended_with_the_word_of_its_answer():
    first = contents({"text": "Half of "}, reason="CONTINUATION")
    first["candidates"][0]["continuationToken"] = "t"
    asked = {"contents": [{"role": "user", "parts": [{"text": "write"}]}]}
    again, down = {**asked, "continuationToken": "t"}, {"error": {"code": 503, "status": "UNAVAILABLE"}}
    found = verdict(exchange(asked, first, url=GEMINI), exchange(again, down, url=GEMINI, status=503),
                    exchange(again, contents({"text": "the rest."}), url=GEMINI))
    assert found[0] == "RETRIED"
    assert 'asked again after a failure and ended with "STOP"' in found[2]


def test_a_cut_answer_whose_request_was_sent_again_was_no_failure():
    (turn,) = show(pair_of([user("hi")], chat("The half", "length"), max_tokens=50),
                    pair_of([user("hi")], chat("All of it."), max_tokens=90)).turns
    assert (turn.verdict.word, "asked again after a cut" in turn.verdict.sentence) == ("RETRIED", True)


def test_a_cut_answer_that_was_sent_again_and_then_continued_is_not_truncated():
    """Qwen Code sends a cut request again with a larger cap, and asks for the rest of an answer that is cut again."""
    half, hint = "The relay keeps a queue of all that was sen", user("Output token limit hit. Resume directly.")
    asked = [user("hi")]
    cut = [pair_of(asked, chat(half, "length"), max_tokens=cap) for cap in (50, 90)]
    (turn,) = show(*cut, pair_of([*asked, assistant(half), hint], chat("t before."), max_tokens=90)).turns
    assert (turn.verdict.word, turn.verdict.sure) == ("RETRIED", False)
    assert turn.verdict.sentence.endswith("and nothing checked that the two belong together")
    assert show(*cut).turns[0].verdict.word == "TRUNCATED"


# -- transcripts of agents, which keep no word for an end -------------------------------------------------------------


def test_an_end_that_no_row_shows_is_not_recorded_and_no_error(tmp_path):
    (turn,) = agents.show(agents.claude(agents.prompt("hi"), agents.block(agents.text("Hello."))), tmp_path).turns
    seen = turn.verdict
    assert (seen.word, seen.severity, seen.glyph) == ("END NOT RECORDED", Severity.WARNING, "∅")
    assert seen.sentence.endswith("how the answer ended was not recorded, and nothing in the file shows it")
    assert seen.advice.text == "run the agent with `inspector record`, which keeps the end of every answer"


def test_an_end_that_other_rows_show_is_inferred_and_never_shown_as_good(tmp_path):
    rows = [agents.prompt("hi"), agents.block(agents.text("Hello.")), agents.system("turn_duration")]
    seen = agents.show(agents.claude(*rows), tmp_path)
    (turn,) = seen.turns
    assert (turn.verdict.word, turn.verdict.severity, turn.verdict.sure) == ("END INFERRED", Severity.INFO, False)
    assert "end_turn is inferred: line 3: the agent recorded the end of its turn" in turn.verdict.sentence
    for role, drawn in ((span.role, span.text) for span in header.verdict(seen)):
        assert role is not Tone.OK, drawn
    for step in seen.steps:
        if step.state is State.EVALUATE_STOP:
            assert glyph_of(step) == ("≈", Tone.PLAIN)


def test_a_cut_before_an_inferred_end_is_told(tmp_path):
    rows = [agents.prompt("hi"), agents.block(agents.text("Hel"), stop="max_tokens"),
            agents.prompt("Continue exactly where you left off."), agents.block(agents.text("lo."), "msg_02"),
            agents.system("turn_duration")]
    (turn,) = agents.show(agents.claude(*rows), tmp_path).turns
    assert turn.verdict.word == "END INFERRED"
    assert "and before it the answer was cut" in turn.verdict.sentence


def test_an_end_in_the_recorders_words_is_said_to_be(tmp_path):
    cut = agents.pi_reply(agents.text("Hel"), stop="length")
    (turn,) = agents.show(agents.pi(agents.pi_user("hi"), cut), tmp_path).turns
    assert turn.verdict.word == "TRUNCATED"
    assert turn.verdict.sentence == (
        'the provider cut the answer: openai_chat ended with "length" as the recorder says, 7 tokens')


# -- the table --------------------------------------------------------------------------------------------------------


def test_a_verdict_is_told_by_word_and_glyph_and_never_by_colour_alone():
    assert len({row.word for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row.word.isupper()
        assert len(row.glyph) == 1
        assert len(row.ascii) == 1
        assert row.ascii.isascii()
        assert row.ascii.isprintable()


def test_the_worst_turn_speaks_for_the_session():
    found = show(pair_of([user("one")], chat("whole")),
                  pair_of([user("two")], chat("cut", "length")),
                  pair_of([user("three")], chat("filtered", "content_filter")))
    assert [turn.verdict.word for turn in found.turns] == ["COMPLETE", "TRUNCATED", "BLOCKED"]
    assert found.headline().startswith("TRUNCATED  turn 2 of 3 · ")
    assert found.counts() == (("TRUNCATED", 1), ("BLOCKED", 1), ("COMPLETE", 1))


def test_a_turn_is_complete_where_nothing_needs_attention_and_nothing_is_inferred():
    found = show(*repair_turn(), pair_of([user("two")], chat("whole")), pair_of([user("three")], chat("cut", "length")))
    assert [(turn.verdict.word, turn.verdict.complete) for turn in found.turns] == [
        ("CALL REPAIRED", True), ("COMPLETE", True), ("TRUNCATED", False)]
    assert found.complete == 2
    assert text_of(header.counts(found)) == "1 ✂ TRUNCATED · 1 ✓ CALL REPAIRED · 1 ✓ COMPLETE · 2 of 3 complete"


def test_running_a_cut_call_outranks_losing_an_answer():
    first, second = cut_call_ran()
    history = [*second["request"]["body"]["messages"], assistant("It is wri"), user("And now the next thing.")]
    second["response"]["body"] = chat("It is wri", "length")
    found = show(first, second, pair_of(history, chat("done"), tools=TOOLS, max_tokens=40))
    assert found.turns[0].verdict.word == "CUT CALL RUN"
    assert {"agent.ran_held_call", "agent.took_cut_answer"} <= {noted.finding.rule for noted in found.findings}


def test_the_verdict_speaks_of_the_response_that_decides_not_of_the_last():
    # An error in the middle of a turn that ended well is not what the turn is about; a cut in it is told as completed.
    history = [user("tell me everything")]
    text = "The first part is about water, "
    cut = pair_of(history, chat(text, "length", tokens=33), max_tokens=33)
    whole = pair_of([*history, assistant(text), user(HINT)], chat("and fire."), max_tokens=33)
    word, _, sentence, _ = verdict(cut, whole)
    assert word == "CUT, COMPLETED"
    assert "33 of 33 tokens" in sentence


# -- seams -----------------------------------------------------------------------------------------------------------

FOX = "The quick brown fox jumps over the lazy dog, and then it goes on to"


def seam_turn(*said: str):
    """A recording of ours: a text that is cut, and continuations that were asked for its last words, then once more."""
    history = [user("tell me")]
    made = [pair_of(list(history), chat(FOX, "length"), max_tokens=10)]
    for number, text in enumerate(said):
        before = said[number - 1] if number else FOX
        history += [assistant(before), user(hint_message(FOX[-40:], again=number > 0).text)]
        made.append(pair_of(list(history), chat(text), max_tokens=10))
    return made


def test_a_seam_without_the_words_that_were_asked_back_is_unverified():
    (turn,) = show(*seam_turn(" rest beside the river.")).turns
    seen = turn.verdict
    assert (seen.word, seen.id, seen.severity, seen.sure) == (
        "SEAM UNVERIFIED", "seam_unverified", Severity.WARNING, False)
    assert "nothing shows that segment 2 continues the text before it" in seen.sentence
    assert turn.joined_text.text == FOX + " rest beside the river.", "it is joined as it was sent"
    assert (turn.terminal, turn.final_turn.notice is None) == ("completed", False)


def test_a_seam_that_is_quoted_is_no_finding():
    (turn,) = show(*seam_turn(f'Sure, here it is: "{FOX[-40:]}" rest.')).turns
    assert (turn.verdict.word, turn.joined_text.text) == ("CUT, COMPLETED", FOX + " rest.")


def test_a_refusal_that_was_asked_for_once_more_leaves_no_doubt_where_the_words_came():
    found = show(*seam_turn("I'm sorry, but I can't.", FOX[-40:] + " rest."))
    (turn,) = found.turns
    assert (turn.verdict.word, turn.joined_text.text) == ("CUT, COMPLETED", FOX + " rest.")
    assert [seam.decision.value for seam in turn.joined_text.seams] == ["left_out", "anchor"]
    assert turn.joined_text.seams[0].cut == "I'm sorry, but I can't."
    (turn,) = show(*seam_turn("Sure! It rests beside the river.", "I'm sorry, but I can't.")).turns
    assert turn.verdict.word == "SEAM UNVERIFIED"
    assert turn.joined_text.text == FOX + "Sure! It rests beside the river."


def test_what_another_agent_asked_for_is_no_finding_of_ours():
    (turn,) = show(*cut_text("The first part is about water, ", "Sure, the second is about fire.")).turns
    assert turn.verdict.word == "CUT, COMPLETED"


def test_a_continuation_that_nothing_in_a_transcript_asked_for_is_a_guess(tmp_path):
    cut = agents.pi_reply(agents.text("Roses are red, violets"), stop="length")
    next_ = agents.pi_reply(agents.text("Done."))
    # between them a message may be lost
    lost = agents.show(agents.pi(agents.pi_user("a poem"), cut, next_), tmp_path)
    (turn,) = lost.turns
    assert (turn.verdict.word, turn.verdict.sure, turn.verdict.complete) == ("CUT, COMPLETED", False, False)
    assert turn.verdict.sentence.endswith("next answer is its rest: the request between them was not recorded")
    (turn,) = agents.show(agents.pi(agents.pi_user("a poem"), cut, agents.pi_user("continue"), next_), tmp_path).turns
    assert (turn.verdict.word, turn.verdict.complete) == ("CUT, COMPLETED", True)
    assert "guess" not in turn.verdict.sentence


def test_a_filter_finds_the_steps_behind_an_unverified_seam():
    found = show(*seam_turn(" rest beside the river."))
    steps = filters.steps(filters.parse("unverified"), found)
    assert [found.steps[index].state for index in steps] == [State.EVALUATE_STOP, State.COMPLETE]
    assert filters.steps(filters.parse("unverified"), show(*seam_turn(FOX[-40:] + " rest."))) == []
    assert filters.steps(filters.parse('verdict:"SEAM UNVERIFIED"'), found) == list(range(len(found.steps)))


# -- the recording was cut --------------------------------------------------------------------------------------------


def verdict_of_bytes(data):
    found = only(show(data=data)).verdict
    return found.word, found.severity, found.sentence, found.advice.text if found.advice else ""


def test_an_answer_that_the_recording_cuts_is_not_blamed_on_the_server():
    data = lines(pair_of(ASKS, cut_stream("The ") + cut_stream("answer")))
    word, severity, sentence, advice = verdict_of_bytes(data[: data.rindex(b"data:") + 9])
    assert (word, severity) == ("RECORDING CUT", Severity.WARNING)
    assert "the recording is cut after" in sentence
    assert "interrupted" not in sentence
    assert advice == "record the turn again; nothing shows that the server failed"


@pytest.mark.skipif(sys.platform == "win32", reason="a locked file cannot be read there")
def test_an_answer_is_under_way_while_its_recorder_runs_and_cut_when_the_recorder_has_gone(tmp_path):
    path = tmp_path / "s.jsonl"
    writer = SessionWriter(path)
    writer.append({"type": "request", "id": "r1", "api": "openai_chat", "body": {"model": "m", "messages": ASKS}})

    def seen():
        shown = view(replay(open_case(open_paths([str(path)]))))
        found = only(shown).verdict
        warned = [each for each in shown.findings if each.finding.severity is not Severity.INFO]
        assert bool(warned) == (found.word == "RECORDING CUT")
        return found.word, found.severity, found.complete, found.sentence, bool(found.advice)

    waits = seen()
    assert waits[:3] == ("UNDER WAY", Severity.INFO, False)
    writer.append({"type": "response", "request": "r1", "status": 200})
    writer.append_bytes("r1", cut_stream("The ").encode(), None)
    word, severity, complete, sentence, advised = seen()
    assert (word, severity, complete, advised) == ("UNDER WAY", Severity.INFO, False, False)
    assert f"{len(cut_stream('The ')):,} bytes" in sentence
    begun = {"role": "assistant", "tool_calls": [{"index": 0, **call(CUT)}]}
    piece = cut_stream("").replace('{"role": "assistant", "content": ""}', json.dumps(begun))
    writer.append_bytes("r1", piece.encode(), None)
    assert seen()[0] == "UNDER WAY", "the rest of the call may come"
    writer.close()
    assert seen()[:3] == ("RECORDING CUT", Severity.WARNING, False)


@pytest.mark.skipif(sys.platform == "win32", reason="a locked file cannot be read there")
def test_a_live_run_that_is_recorded_is_not_cut_behind_a_call_until_its_recorder_has_gone(tmp_path):
    path = tmp_path / "s.jsonl"
    writer = SessionWriter(path, producer=PRODUCER, provenance=BY_US)
    asks = {"model": "m", "messages": ASKS, "tools": TOOLS}
    writer.append({"type": "request", "id": "r1", "api": "openai_chat", "body": asks})
    writer.append({"type": "response", "request": "r1", "status": 200})
    writer.append_bytes("r1", json.dumps(chat(None, "tool_calls", call(WHOLE))).encode(), None)
    writer.append({"type": "end", "request": "r1", "end": "eof"})
    assert only(view(replay(open_case(open_paths([str(path)]))))).verdict.word == "COMPLETE SO FAR"
    writer.close()
    assert only(view(replay(open_case(open_paths([str(path)]))))).verdict.word == "RECORDING CUT"


def test_calls_whose_results_the_recording_cuts_off_are_not_a_finished_turn():
    answer = chat(None, "tool_calls", call(WHOLE))
    whole = lines(pair_of(ASKS, answer, tools=TOOLS), pair_of([*ASKS, assistant("x")], answer))
    second = whole.index(b"\n") + 1
    word, severity, sentence, _ = verdict_of_bytes(whole[: second + 9])
    assert (word, severity) == ("RECORDING CUT", Severity.WARNING)
    assert "what became of its calls is unknown" in sentence
    assert verdict(pair_of(ASKS, answer, tools=TOOLS))[0] == "COMPLETE SO FAR"


def test_a_finished_answer_in_front_of_a_cut_is_finished():
    whole = lines(pair_of(ASKS, chat("done")), pair_of([*ASKS, assistant("done"), user("more")], chat("more")))
    assert verdict_of_bytes(whole[: whole.index(b"\n") + 10])[0] == "COMPLETE"


@each_row(("message", "reason", "word"), [
    ({"content": "", "role": "assistant"}, "stop", "EMPTY ANSWER"),
    ({"content": "", "reasoning_content": "Let me think.", "role": "assistant"}, "stop", "REASONING ONLY"),
    ({"content": '<tool_call>{"name": "write_file", "arguments": {"path": "a"}}</tool_call>', "role": "assistant"},
     "stop", "CALL LEAKED"),
    ({"content": "I will write it.", "role": "assistant"}, "tool_calls", "NO CALL"),
    ({"content": "It is written.", "role": "assistant"}, None, "NO STOP REASON"),
])
def test_an_answer_that_only_looks_finished_has_its_own_word(message, reason, word):
    body = {"id": "c", "object": "chat.completion", "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    found = alone(body, tools=TOOLS)
    assert found[0] == word
    assert found[1] is not Severity.INFO


@pytest.mark.parametrize(("said", "word", "terminal"), [
    ("The plan is done.", "CUT, COMPLETED", "completed"),
    ("The plan has these parts,", "EMPTY ANSWER", "no_answer"),  # it visibly stops in the middle
])
def test_an_empty_rest_of_a_whole_text_is_no_empty_answer(said, word, terminal):
    first = {"model": "c", "max_tokens": 9, "messages": ASKS}
    rest = {**first, "messages": [*ASKS, assistant(said)]}
    seen = only(show(exchange(first, message([{"type": "text", "text": said}], "max_tokens", 9), url=MESSAGES),
                      exchange(rest, message([], "end_turn", 1), url=MESSAGES)))
    assert (seen.verdict.word, seen.final_turn.terminal) == (word, terminal)
    assert seen.verdict.complete is (terminal == "completed")
    (note,) = [note.finding for note in seen.findings if note.finding.rule == "ending.empty_answer"]
    assert note.severity is (Severity.INFO if terminal == "completed" else Severity.ERROR), "as the verdict says"


def test_an_empty_answer_is_an_error_until_silence_is_allowed():
    answered = pair_of(ASKS, chat(""), max_tokens=50)
    before = show(answered)
    allowed = Settings(allow_silence=True)
    after = view(replay(before.replay.case, allowed), before)
    again = view(replay(before.replay.case, Settings()), after)
    for seen, severity in ((before, Severity.ERROR), (after, Severity.INFO), (again, Severity.ERROR),
                           (show(answered, settings=allowed), Severity.INFO)):
        assert [note.finding.severity for note in seen.findings] == [severity]
        assert seen.turns[0].verdict.severity is severity


def test_a_commentary_alone_has_its_own_word():
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "phase": "commentary",
            "content": [{"type": "output_text", "text": "I will look.", "annotations": []}]}
    body = {"id": "r", "object": "response", "status": "completed", "model": "m-1", "output": [said]}
    asks = {"model": "m-1", "input": "x"}
    assert verdict(exchange(asks, body, url=RESPONSES))[0] == "COMMENTARY ONLY"


def test_a_verdict_leads_to_the_step_of_the_answer_that_it_is_about():
    asks = [*ASKS, assistant("done"), user("and now?")]
    seen = show(*cut_call_ran(), pair_of(asks, chat("all well")))
    cut, whole = seen.turns
    assert seen.steps[seen.deciding_step(cut)].turn.evaluation.judgement.stop.raw == "length"
    assert seen.steps[seen.deciding_step(whole)].turn.evaluation.response.text == "all well"
    repaired = show(*repair_turn())
    at = repaired.deciding_step(only(repaired))
    assert repaired.steps[at].turn.evaluation.verdicts[0].admission.value == "held"


def test_a_verdict_that_a_limit_ended_the_turn_leads_to_that_end_and_not_to_what_the_agent_did_later():
    seen = show(*cut_text(*(f"Part {number} of the plan. " for number in range(5)), last="length"))
    turn = only(seen)
    assert turn.verdict.word == "TRUNCATED"
    assert "this loop's limit continuation_max_attempts (3 of 3) ended the turn" in turn.verdict.sentence
    step = seen.steps[seen.deciding_step(turn)]
    assert (step.state, step.response) == (State.ABORT_PARTIAL, 3)
    assert seen.deciding_step(turn) < turn.run.deciding_step < turn.run.end - 1
    within = only(show(*cut_text("One. ", "Two. ", "Three. ", "Four. ", last="length")))
    assert within.verdict.answer == 3  # the answer that the limit stood behind is still shown where it was evaluated


def test_the_verdict_on_a_paused_turn_that_ended_well_is_about_its_last_answer():
    sample = next(each for each in samples() if "13-pause-turn" in str(each.path))
    seen = open_view([str(sample.path)], None, None, Settings())[1]
    (turn,) = seen.turns
    assert turn.verdict.word == "COMPLETE"
    assert seen.steps[seen.deciding_step(turn)].turn.evaluation.judgement.stop.normalized is Stop.END_TURN


# -- the last answer asks for a tool ----------------------------------------------------------------------------------

ASKING = "; the answer is complete and asks for write_file, and no later answer of this turn is in its file"


def test_a_recording_that_ends_with_a_whole_call_says_what_it_does_not_hold():
    word, severity, sentence, advice = verdict(awaiting())
    assert (word, severity, advice) == ("COMPLETE SO FAR", Severity.INFO, "")
    assert sentence.endswith(ASKING)
    seen = only(show(awaiting())).verdict
    assert (seen.id, seen.sure, seen.complete, seen.glyph) == ("complete", False, False, "▷")


def test_a_call_that_was_answered_is_not_said_to_wait():
    after = [*ASKS, assistant(None, call(WHOLE)), result()]
    word, _, sentence, _ = verdict(awaiting(), pair_of(after, chat("It is written."), tools=TOOLS))
    assert word == "COMPLETE"
    assert "asks for" not in sentence


def test_a_turn_that_the_user_left_at_a_call_speaks_of_itself_alone():
    """The next turn has an answer, so the sentence must not say that the recording holds nothing more."""
    later = [*ASKS, assistant(None, call(WHOLE)), user("Never mind. What is 2 + 2?")]
    first, second = show(awaiting(), pair_of(later, chat("4."), tools=TOOLS)).turns
    assert first.verdict.sentence.endswith(ASKING)
    assert (second.verdict.word, "asks for" in second.verdict.sentence) == ("COMPLETE", False)


def test_a_request_that_was_sent_again_says_it_too():
    failed = exchange(awaiting()["request"]["body"], {"error": {"message": "busy"}}, status=503)
    word, _, sentence, _ = verdict(failed, awaiting())
    assert word == "RETRIED"
    assert sentence.endswith(ASKING)


@pytest.mark.parametrize(("names", "said"), [
    (("a", "b"), "asks for a and b, and"), (("a", "a"), "asks for a, and"),
    (("a", "b", "c"), "asks for 3 tool calls, and"),
])
def test_few_tools_are_named_and_more_are_counted(names, said):
    calls = [call("{}", f"call_{at}", name) for at, name in enumerate(names)]
    assert said in alone(chat(None, "tool_calls", *calls))[2]


def test_a_call_without_a_name_and_arguments_is_none_that_the_answer_asks_for():
    assert "asks for a, and" in alone(chat(None, "stop", {}, call("{}", "call_1", "a")))[2]


def test_a_simulated_turn_that_stops_at_a_call_is_not_complete():
    played = show(*repair_turn()[:2], settings=Settings(max_tokens=400, simulate=True))
    seen = only(played).verdict
    assert (seen.word, seen.id, seen.severity, seen.sure) == ("AWAITS RESULT", "awaits_result", Severity.INFO, False)
    assert (seen.complete, seen.clean, seen.advice) == (False, True, None)
    assert seen.sentence == (
        'SIMULATED: openai_chat (openai) ended with "tool_calls", 19 of 400 tokens; the answer is complete, but the '
        "turn is not finished; the recording of this turn ends here: what this loop asks for next was never recorded")
    assert header.head_of(played, only(played))[0].role is Tone.PLAIN, "never the colour of success"
    assert "✓" not in text_of(header.verdict(played))
    assert played.complete == 0


def test_a_simulated_turn_that_goes_on_after_its_call_is_complete():
    played = show(*repair_turn(), settings=Settings(max_tokens=400, simulate=True))
    assert (only(played).verdict.word, played.complete) == ("COMPLETE", 1)


def test_a_simulated_turn_that_stops_at_its_second_call_is_not_complete():
    first, again, after = repair_turn()
    asks = after["request"]["body"]["messages"]
    second = pair_of(asks, chat(None, "tool_calls", call(WHOLE, "call_z")), tools=TOOLS, max_tokens=40)
    played = show(first, again, second, settings=Settings(max_tokens=400, simulate=True))
    assert (only(played).verdict.word, only(played).segments) == ("AWAITS RESULT", 2)


# -- A clean end just at the cap --------------------------------------------------------------------------------------


def thought(tokens: int) -> dict[str, object]:
    """An answer of so many tokens, of which all but three are reasoning."""
    body = chat("The plan is written.", tokens=tokens)
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": tokens - 3}
    return body


def test_a_text_that_stops_in_the_middle_under_a_clean_word_needs_attention_and_says_that_it_is_a_guess():
    said = "The deploy failed. The migration took a lock and"
    turn = only(show(pair_of(ASKS, chat(said, tokens=14), max_tokens=64)))
    assert (turn.verdict.word, turn.verdict.severity) == ("TEXT UNFINISHED", Severity.WARNING)
    assert turn.verdict.sentence == (
        'openai_chat (openai) ended with "stop", 14 of 64 tokens, but the text stops in the middle (its last word is '
        "'and'); it is a guess that it was cut")
    assert not turn.verdict.complete
    assert only(show(*cut_text(PARTS[0], said))).verdict.word == "TEXT UNFINISHED", "the last answer counts"
    whole = only(show(pair_of(ASKS, chat(f"{said} blocked it", tokens=14), max_tokens=64)))
    assert whole.verdict.word == "COMPLETE"


@each_row(("exchanges", "word"), [
    ([pair_of(ASKS, chat("The plan is written.", tokens=30), max_tokens=30)], "MAYBE CUT"),
    ([pair_of(ASKS, chat("The plan is written.", tokens=29), max_tokens=30)], "COMPLETE"),
    ([pair_of(ASKS, chat("The plan is written.", tokens=30))], "COMPLETE"),
    ([pair_of(ASKS, thought(30), max_tokens=30)], "COMPLETE"),  # not every server counts reasoning under the cap
    (cut_text("The plan is long, ", "and this is its end.", max_tokens=5), "MAYBE CUT"),
    (cut_text("The plan is long, ", "and this is its end.", max_tokens=6), "CUT, COMPLETED"),
])
def test_an_answer_that_ends_cleanly_at_its_cap_may_be_cut(exchanges: list[object], word: str) -> None:
    turn = only(show(*exchanges))
    assert turn.verdict.word == word
    assert turn.verdict.complete is (word != "MAYBE CUT")
    assert turn.verdict.severity is Severity.INFO


def test_a_simulated_answer_that_fits_its_cap_is_known_to_be_whole() -> None:
    said = "One two three four five."
    settings = Settings(max_tokens=24, simulate=True)
    turn = only(show(pair_of(ASKS, chat(said, tokens=24), max_tokens=200), settings=settings))
    assert turn.verdict.word == "COMPLETE"


# -- A recording that ends with a whole call after a cut ---------------------------------------------------------------


def test_a_call_that_was_held_and_came_whole_is_repaired_also_where_the_recording_ends_with_it() -> None:
    word, severity, sentence, _ = verdict(*repair_turn()[:2])
    assert (word, severity) == ("CALL REPAIRED", Severity.INFO)
    assert sentence.endswith("asks for write_file, and no later answer of this turn is in its file")


def test_a_text_that_was_cut_and_continued_up_to_a_call_is_completed() -> None:
    first, _ = cut_text("The plan is ", "long.")
    asks = [user("tell me everything"), assistant("The plan is "), user(HINT)]
    last = pair_of(asks, chat("long.", "tool_calls", call(WHOLE)), tools=TOOLS)
    word, severity, sentence, _ = verdict(first, last)
    assert (word, severity) == ("CUT, COMPLETED", Severity.INFO)
    assert "asks for write_file" in sentence


ROUTER = "https://openrouter.ai/api/v1/chat/completions"


@each_row(("word", "native", "named", "said", "advised"), [
    ("stop", "pause_turn", "INTERRUPTED",
     "openai_chat (openrouter) did not finish the answer: the response says 'stop', the engine or provider behind it "
     "'pause_turn'",
     "send the request again, or to the provider behind the router"),
    ("length", "pause_turn", "INTERRUPTED", "the response says 'length', the engine or provider behind it 'pause_turn'",
     "send the request again, or to the provider behind the router"),
    ("length", "model_context_window_exceeded", "CONTEXT FULL",
     "the engine or provider behind it 'model_context_window_exceeded'", "shorten the history"),
    ("length", "SAFETY", "BLOCKED",
     "filtered the answer (the response says 'length', the engine or provider behind it 'SAFETY')",
     "a continuation will not help"),
])
def test_the_word_of_the_provider_behind_a_router_is_told_where_it_decides(word, native, named, said, advised):
    body = chat("All of it", word)
    body["choices"][0]["native_finish_reason"] = native
    told = alone(body, url=ROUTER, max_tokens=100)
    assert told[0] == named
    assert said in told[2]
    assert advised in told[3]


@pytest.mark.parametrize(("word", "named", "why"), [
    ("zz_new_word", "UNKNOWN REASON", "no known stop reason says that the answer is complete"),
    ("content_filter", "BLOCKED", "the response was filtered or declined"),
    ("repetition_truncation", "ERROR", "the provider reported an error"),
])
def test_a_whole_call_that_waits_is_told_whatever_ended_the_answer(word, named, why):
    told = alone(chat("I will write it.", word, call()))
    assert told[0] == named
    assert told[2].endswith(f"; its call write_file is held: {why}")
    assert "held" not in alone(chat("I will write it.", word))[2]
