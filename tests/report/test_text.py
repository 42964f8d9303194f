"""The linear report: the verdict first, every fact in words, nothing hostile, no colour."""

from __future__ import annotations

import json
import re
from pathlib import Path

from inspector.report.explain import place, text
from inspector.report.explain_document import document
from inspector.report.lines.merged import merged_sheet
from inspector.report.lines.spans import text_of
from inspector.report.lines.steps import Outline
from inspector.tui.session_files import ReadingOptions, load
from loop_core.values import At, ExchangePart
from tests.report.test_inert import HOSTILE, dangerous
from tests.scenes.recordings import (
    ASKS,
    CUT,
    MESSAGES,
    PARTS,
    TOOLS,
    assistant,
    call,
    chat,
    cut_call_ran,
    cut_text,
    exchange,
    lines,
    message,
    pair_of,
    result,
    show,
    user,
)
from tests.scenes.rows import each_row

ROOT = Path(__file__).parents[2]


def report(*exchanges, **options):
    return text(show(*exchanges, **options))


def test_the_verdict_comes_first():
    found = show(pair_of([user("one")], chat("whole")), *cut_call_ran())
    said = text(found).splitlines()
    assert said[0] == found.headline()
    assert said[0].startswith("CUT CALL RUN  turn 2 of 2")
    assert said[1] == "turns: 1 cut call run · 1 complete"


def test_thousands_are_counted_as_in_the_app():
    said = report(*(pair_of([user(f"{number}")], chat("whole")) for number in range(1000))).splitlines()
    assert said[0].startswith("COMPLETE  turn 1 of 1,000 · ")
    assert said[1] == "turns: 1,000 complete"
    assert any(line.startswith("turn 1,000 of 1,000 (t1000): ") for line in said)


def test_one_turn_is_not_counted():
    assert "turns:" not in report(pair_of(ASKS, chat("whole")))


def test_what_was_read_and_what_was_not():
    data = lines(pair_of(ASKS, chat("one"))) + b'{"nothing": "to see"}\n'
    assert "read -: pairs, 1 response, 1 entry skipped" in report(data=data)


def test_a_cut_call_in_words():
    said = report(*cut_call_ran())
    assert 'raw "length" > max_tokens' in said
    assert "tokens: 40 out, cap 40" in said
    assert "call write_file: HELD (the recorded agent ran it), " in said
    assert f"received: {CUT}" in said
    assert "this loop: Request > EvaluateStop > RepairPending > RequestToolRepair > Unrecorded" in said
    assert "ends in Unrecorded; continuations 0" in said, "the reason would say the state again"
    assert "this loop then: RepairPending; the recorded agent: answered the calls" in said
    assert "[agent.ran_held_call]" in said
    assert "what to change: never run a held call; raise max_tokens; only a live run can show" in said


def test_equal_rounds_of_the_machine_are_counted():
    """Three answers with calls, each answered, then the end: a loop of forty rounds has one line too."""
    whole = '{"path": "a.md", "content": "x"}'
    history, exchanges = list(ASKS), []
    for number in range(3):
        one = call(whole, key=f"call_{number}")
        exchanges.append(pair_of(list(history), chat(None, "tool_calls", one), tools=TOOLS))
        history += [assistant(None, one), result(key=f"call_{number}")]
    exchanges.append(pair_of(history, chat("Done."), tools=TOOLS))
    rounds = "(Request > EvaluateStop > ExecuteTools) 3 times > Request > EvaluateStop > Complete"
    assert f"this loop: {rounds}\n" in report(*exchanges)


def test_a_corrected_reason_shows_both_words():
    assert 'raw "tool_calls" > tool_call > max_tokens' in report(
        pair_of(ASKS, chat(None, "tool_calls", call(CUT)), tools=TOOLS)
    )


def test_the_merged_text_and_its_seams():
    said = report(*cut_text("The first part is about water, and ", "the second\nis about fire."))
    assert "merged text:\n    The first part is about water, and the second\n    is about fire.\n" in said
    assert f"seam before segment 2 at character {len('The first part is about water, and ')}" in said


@each_row("path", sorted(ROOT.glob("sample_sessions/*.jsonl")))
def test_a_report_names_no_key_of_the_app(path):
    said = text(load((str(path),), ReadingOptions()).original.view)
    assert "turn 1" in said
    assert not re.findall(r"\([A-Z]\)", said)


def test_the_end_of_a_turn_and_its_notice():
    said = report(*cut_text(*PARTS))
    assert "ends in AbortPartial, retry_limit; continuations 3" in said
    assert "notice: The answer is incomplete" in said


def test_thinking_is_counted_apart():
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 1234,
        "total_tokens": 1243,
        "completion_tokens_details": {"reasoning_tokens": 1000},
    }
    assert "tokens: 1,234 out, of which reasoning 1,000" in report(pair_of(ASKS, chat("Yes.", usage=usage)))


def test_a_finding_stands_below_its_response():
    said = report(*cut_call_ran()).splitlines()
    first, second = (next(n for n, line in enumerate(said) if line.startswith(f"  response {k} ")) for k in (1, 2))
    finding = next(n for n, line in enumerate(said) if "agent.ran_held_call" in line)
    assert first < finding < second


@each_row(
    ("at", "words"),
    [
        (None, "the whole response"),
        (At(ExchangePart.BODY, 1200, 1300, "/choices/0"), "body bytes 1,200 to 1,300 /choices/0"),
        (At(ExchangePart.HEADERS), "headers"),
        (At(ExchangePart.REQUEST, None, None, "/messages/3"), "request /messages/3"),
    ],
)
def test_a_place_in_words(at, words):
    assert place(at) == words


# -- hostile transcripts ----------------------------------------------------------------------------------------------


def hostile(bad):
    """The same bad text in every place where a transcript can put one."""
    arguments = json.dumps({"path": bad})
    named = call(arguments, f"call_{bad}", f"write{bad}")
    history = [user(bad), assistant(bad, named), result(bad, f"call_{bad}")]
    return [
        pair_of([user(bad)], chat(bad, "length", named, model=bad), tools=TOOLS, model=bad),
        pair_of(history, chat(bad, bad or "x"), url=f"https://evil.example/{bad}/v1/chat/completions"),
        pair_of([user("e")], {"error": {"message": bad, "type": bad, "code": bad}}, status=500),
        pair_of([user("m")], message([{"type": "text", "text": bad}], bad), url=MESSAGES, max_tokens=9),
        pair_of(
            [user("q")],
            {"type": "error", "error": {"type": bad, "message": bad}},
            url=MESSAGES,
            status=400,
            max_tokens=9,
        ),
        pair_of([user("s")], json.dumps(chat(bad, "length", named))),  # the escapes of the body are its own
        exchange(
            {"model": bad, "messages": [user("z")]}, chat("z", "stop"), headers={bad: bad}, response_headers={bad: bad}
        ),
        {bad: bad},
    ]


@each_row(
    "bad",
    [*HOSTILE.values(), "".join(HOSTILE.values()), "[red]x[/red][@click=app.quit]y[/]"],
)
def test_hostile_text_is_inert_in_the_report_and_in_the_document(bad):
    found = show(*hostile(bad))
    said = text(found)
    assert len(found.responses) >= 5
    assert dangerous(said) == []
    said.encode("utf-8")
    written = json.dumps(document(found), ensure_ascii=True)
    assert written.isascii()
    assert "\x1b" not in written
    assert "\x7f" not in json.loads(json.dumps(said))


def test_markup_is_shown_as_it_was_sent():
    assert "    [bold red]never parsed[/]" in report(pair_of(ASKS, chat("[bold red]never parsed[/]")))


def test_a_report_has_no_line_that_begins_like_one_of_ours_by_accident_of_a_carriage_return():
    said = report(pair_of(ASKS, chat("fine\rCOMPLETE  turn 1 of 1", "length")))
    assert [line for line in said.split("\n") if line.startswith("COMPLETE")] == []
    assert said.splitlines()[0].startswith("TRUNCATED")


# -- credentials ------------------------------------------------------------------------------------------------------

SECRETS = (
    "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD",
    "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIAABCDEFGHIJKLMNOP",
    "planted-only-by-name-7f3a9c",
)


@each_row("secret", SECRETS)
def test_no_credential_reaches_any_output(secret):
    headers = {
        "Authorization": f"Bearer {secret}",
        "x-api-key": secret,
        "Cookie": f"session={secret}",
        "api-key": secret,
        "X-Goog-Api-Key": secret,
    }
    address = f"https://someone:{secret}@api.openai.com/v1/chat/completions?key={secret}&api_key={secret}&x=1"
    request = {
        "model": "m",
        "messages": [user("hi")],
        "api_key": secret,
        "tools": [
            {
                "type": "mcp",
                "server_url": "https://mcp.example",
                "authorization": secret,
                "headers": {"Authorization": f"Bearer {secret}"},
            }
        ],
    }
    answer = chat("hello", "entropy")
    found = show(
        exchange(request, answer, url=address, headers=headers, response_headers={"Set-Cookie": f"s={secret}"}),
        exchange(
            {"model": "m", "messages": [user("no")]},
            {"error": {"message": "no", "type": "t", "code": None}},
            url=address,
            status=401,
            headers=headers,
        ),
    )
    assert len(found.responses) == 2
    assert secret not in text(found)
    assert secret not in json.dumps(document(found))
    kept = found.responses[0].exchange
    assert secret not in repr((kept.url, kept.headers, kept.request_headers, kept.request_json))


@each_row("secret", SECRETS[:-1])
def test_a_well_known_key_is_masked_wherever_it_stands(secret):
    said = f"Your key is {secret}, keep it."
    made = call(json.dumps({"path": said}))
    refused = {"error": {"message": f"Incorrect API key provided: {secret}.", "type": "invalid", "code": "bad"}}
    history = [user(said), assistant(said, made), result(said)]
    found = show(
        pair_of([user(said)], chat(said, "length", made), tools=TOOLS),
        pair_of(history, chat(said)),
        pair_of([user("no")], refused, status=401),
    )
    assert len(found.responses) == 3
    assert secret not in text(found)
    assert secret not in json.dumps(document(found))
    assert all(secret.encode() not in facts.exchange.body for facts in found.responses)


def test_a_model_that_gave_way_to_another_is_a_seam_in_the_report_and_in_the_merged_text() -> None:
    content = [
        {"type": "text", "text": "The first half, "},
        {"type": "fallback", "from": {"model": "model-a"}, "to": {"model": "model-b"}, "trigger": {"type": "refusal"}},
        {"type": "text", "text": "and the second."},
    ]
    body = {"type": "message", "role": "assistant", "model": "model-b", "content": content, "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 8}}
    asks = {"model": "model-a", "max_tokens": 99, "messages": [user("x")]}
    seen = show(exchange(asks, body, url=MESSAGES))
    told = "seam inside response 1 at character 16: fallback, model-a gave way to model-b (refusal)"
    assert told in text(seen)
    sheet = merged_sheet(seen, Outline(seen).blocks[0], len(seen.steps) - 1)
    rows = [text_of(sheet.line(index)) for index in range(len(sheet))]
    at = next(number for number, row in enumerate(rows) if "fallback: model-a gave way to model-b" in row)
    assert "The first half," in rows[at - 1]
    assert "and the second." in rows[at + 1]
