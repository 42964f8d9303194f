"""Conversations of gptme: calls in the text, results, and requests that failed."""

from __future__ import annotations

import json

import pytest

from inspector.sessions import open_paths
from inspector.sessions.importers.recognition import choose
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, show, stops, words

HEAD = {"role": "system", "content": "You are gptme.", "timestamp": "2026-11-29T18:30:38", "pinned": True, "hide": True}
GO = {"role": "user", "content": "Save the report.", "timestamp": "2026-11-29T18:30:39"}
NUDGE = {"role": "user", "content": "<system>No tool call detected in last message. Did you mean to finish? If so, "
         "make sure you are completely done and then use the `complete` tool to end the session.</system>"}
CUT, WHOLE = '{"path": "report.md", "content": "Satur', '{"path": "report.md", "content": "done"}'


def said(text, **more):
    return {"role": "assistant", "content": text, "metadata": {"model": "local/m", **more}}


def result(text, key="c1"):
    return {"role": "system", "content": text, "call_id": key, "metadata": {"tool": "save"}}


def lines(*rows):
    return "".join(json.dumps(each) + "\n" for each in (HEAD, *rows))


def read(tmp_path, *rows):
    return show(lines(GO, *rows), tmp_path, name="conversation.jsonl")


def calls(seen):
    return [[(each.id, each.name, each.arguments) for each in step.exchange.response.tool_calls]
            for step in seen.responses]


def texts(seen):
    return [each.exchange.response.text or "" for each in seen.responses]


def test_a_conversation_is_recognised_by_its_first_message():
    assert choose(lines(GO).encode(), "conversation.jsonl") == "gptme"
    assert choose(json.dumps(GO).encode(), "conversation.jsonl") != "gptme"


def test_a_cut_call_is_held_and_asked_for_again(tmp_path):
    seen = read(tmp_path, said(f"I write.\n@save(c1): {CUT}"), NUDGE, said(f"\n@save(c2): {WHOLE}"),
                result("Saved to report.md", "c2"), said("Done."))
    assert (stops(seen), words(seen)) == (["max_tokens", "tool_call", "unknown"], ["END NOT RECORDED"])
    assert calls(seen) == [[("c1", "save", CUT)], [("c2", "save", WHOLE)], []]
    assert texts(seen) == ["I write.", "", "Done."]
    assert "transcript.inferred.call_cut" in rules(seen)
    assert seen.responses[0].exchange.response.tool_calls[0].at.pointer == "/content"


def test_a_cut_call_with_a_result_ran(tmp_path):
    assert words(read(tmp_path, said(f"@save(c1): {CUT}"), result("Saved to report.md"), said("Done."))) == [
        "CUT CALL RUN"]


def test_calls_beside_each_other_and_text_between_them(tmp_path):
    seen = read(tmp_path, said(f"One.\n@save(c1): {WHOLE}\nTwo.\n@save(c2): {WHOLE}\n"), result("a"), result("b", "c2"))
    assert calls(seen) == [[("c1", "save", WHOLE), ("c2", "save", WHOLE)]]
    assert (texts(seen), stops(seen)) == (["One.Two."], ["tool_call"])


@each_row("text", [
    f"For example:\n```\n@save(c1): {WHOLE}\n```\nThat is it.", f"Write @save(c1): {WHOLE}", "@save(c1): none",
    "```save report.md\nSaturated from",
])
def test_an_example_and_a_block_are_text(tmp_path, text):
    seen = read(tmp_path, said(text), NUDGE)
    assert (calls(seen), texts(seen), stops(seen)) == ([[]], [text], ["unknown"])


def test_a_call_behind_a_block_that_never_ended_is_a_call(tmp_path):
    assert calls(read(tmp_path, said(f"```save a\nSatur\n@save(c1): {WHOLE}"))) == [[("c1", "save", WHOLE)]]


def test_a_mark_within_arguments_is_no_call(tmp_path):
    given = json.dumps({"content": "x"})[:-2] + '\n@save(c9): {}\n```\n"}'
    assert calls(read(tmp_path, said(f"@save(c1): {given}\n@save(c2): {WHOLE}"))) == [
        [("c1", "save", given), ("c2", "save", WHOLE)]]


def test_the_end_of_a_text_is_not_inferred_and_a_result_begins_no_turn(tmp_path):
    saved = {"role": "system", "content": "Saved to report.md"}
    seen = read(tmp_path, said("```save report.md\nx\n```"), saved, said("The queue was"), GO)
    assert (stops(seen), len(seen.turns)) == (["unknown"] * 2, 1)
    assert seen.responses[1].exchange.request.messages[0].results[0].text == "Saved to report.md"


@pytest.mark.parametrize("more", [{"hide": True}, {"hide": True, "pinned": True}])
def test_a_hidden_message_is_no_result(tmp_path, more):
    seen = read(tmp_path, said("One."), {"role": "system", "content": "The time is 9.", **more}, GO, said("Two."))
    assert len(seen.turns) == 2


@pytest.mark.parametrize(("name", "title"), [("conversation.jsonl", "rivers"), ("copy.jsonl", "")])
def test_the_folder_names_the_conversation(tmp_path, name, title):
    (folder := tmp_path / "rivers").mkdir()
    about = show(lines(GO, said("Done.")), folder, name=name).inputs[0].about
    assert ((about and about.title) or "") == title


def test_a_stream_that_broke_off_is_a_failed_request(tmp_path):
    why = "error: generic\npeer closed connection without sending complete message body (incomplete chunked read)"
    seen = read(tmp_path, {"role": "system", "content": why, "metadata": {"error": True}})
    assert stops(seen) == ["error"]
    assert "peer closed connection" in seen.responses[0].exchange.response.error.message


def test_the_model_and_the_counts(tmp_path):
    usage = {"input_tokens": 9, "output_tokens": 4, "cache_read_tokens": 2, "cache_creation_tokens": 1}
    found = read(tmp_path, said("Done.", usage=usage), said("Done.")).responses
    counts = found[0].exchange.response.usage
    assert (counts.input_tokens, counts.output_tokens, counts.cached_tokens, counts.cache_write_tokens) == (
        9, 4, 2, 1)
    assert (found[1].exchange.response.usage, found[0].exchange.response.model) == (None, "local/m")


def test_thousands_of_answers_and_calls_are_read_in_linear_time(tmp_path):
    def written(count):
        path = tmp_path / f"{count}.jsonl"
        many = said("\n".join(f"@save(d{at}): {WHOLE}\n```\n@x(y): {{}}\n```" for at in range(count)))
        path.write_text(lines(*[GO, said(f"@save(c1): {WHOLE}"), result("ok")] * count, many))
        return path, count + 1

    def read(file):
        assert len(open_paths([str(file[0])]).exchanges) == file[1]

    assert growth(read, written, 600) < IN_PROPORTION


@pytest.mark.parametrize(("row", "member"), [
    ({"role": 5, "content": "x"}, "role is a number"), ({**GO, "content": 5}, "content is a number"),
    ({**GO, "metadata": "x"}, "metadata is text"),
])
def test_a_member_of_another_type_is_reported(tmp_path, row, member):
    notices = "\n".join(map(str, read(tmp_path, row).inputs[0].notices))
    assert f"{member}, but " in notices
