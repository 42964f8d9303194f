"""Transcripts of Antigravity: steps without ids, results in the order of the calls, and what the file shortens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.check import check_paths
from inspector.check.rules import RULES
from inspector.sessions import open_paths
from inspector.sessions.open import open_each
from loop_core.values import Severity
from tests.scenes.transcripts import rules, show, stops, words

Row = dict[str, Any]
FULL = "transcript_full.jsonl has them"


def step(kind: str, source: str = "MODEL", **more: Any) -> Row:
    return {"source": source, "type": kind, "status": "DONE", "created_at": "2026-06-01T10:00:00Z", **more}


def prompt(text: str) -> Row:
    return step("USER_INPUT", "USER_EXPLICIT", content=text)


def reply(text: str | None = None, *calls: str, **more: Any) -> Row:
    listed = [{"name": name, "args": {"Path": f'"{number}"'}} for number, name in enumerate(calls)]
    held = {"content": text, "tool_calls": listed}
    return step("PLANNER_RESPONSE", **{name: value for name, value in held.items() if value}, **more)


def failure(why: str, **more: Any) -> Row:
    return step("ERROR_MESSAGE", "SYSTEM", error=why, **more)


def lines(*rows: Row) -> str:
    return "".join(json.dumps({"step_index": number, **row}) + "\n" for number, row in enumerate(rows))


def read(tmp_path: Path, *rows: Row):
    return show(lines(*rows), tmp_path)


def test_answers_calls_and_results_in_their_order(tmp_path):
    seen = read(
        tmp_path, prompt("<USER_REQUEST>\ngo\n</USER_REQUEST>\n<ADDITIONAL_METADATA>now</ADDITIONAL_METADATA>"),
        reply("Look.", "list_dir", "view_file", thinking="hm"), step("LIST_DIRECTORY", content="a.md"),
        step("VIEW_FILE", content="no such file", status="ERROR"), reply("Done."), prompt("more"), reply("Yes."),
    )
    assert seen.inputs[0].format == "antigravity"
    first, last, _ = (facts.exchange for facts in seen.responses)
    assert (first.response.text, first.response.reasoning_content, first.api) == ("Look.", "hm", "gemini_generate")
    assert (first.started, seen.turns[0].run.record.user_text) == ("2026-06-01T10:00:00Z", "go")
    assert [(each.name, each.arguments) for each in first.response.tool_calls] == [
        ("list_dir", '{"Path": "\\"0\\""}'), ("view_file", '{"Path": "\\"1\\""}')]
    results = [part for message in last.request.messages for part in message.results]
    assert [(part.name, part.text, part.is_error) for part in results] == [
        ("list_dir", "a.md", False), ("view_file", "no such file", True)]
    assert stops(seen) == ["tool_call", "end_turn", "unknown"]
    assert words(seen) == ["END INFERRED", "END NOT RECORDED"]


def test_the_model_that_the_user_chose(tmp_path):
    chosen = "The user changed setting `Model Selection` from None to Gemini 3.5 Flash (High). No need to comment."
    seen = read(tmp_path, prompt("go"), reply("Hi."), prompt(f"<USER_REQUEST>on</USER_REQUEST>{chosen}"), reply("Ho."))
    assert [facts.exchange.response.model for facts in seen.responses] == [None, "Gemini 3.5 Flash (High)"]


def test_a_call_that_the_file_shortens_is_not_ready(tmp_path):
    whole, part = reply("Look.", "ls"), reply("Look.", "ls", truncated_fields=["tool_calls"])
    result = step("LIST_DIRECTORY", content="a.md")
    seen = read(tmp_path, prompt("go"), whole, result, reply("Done."), prompt("more"), reply("x" * 9))
    assert seen.responses[0].verdicts[0].admission.value == "ready"
    seen = read(tmp_path, prompt("go"), part, result, reply("Done."), prompt("more"), reply("x" * 9))
    assert (seen.responses[0].verdicts[0].admission.value, stops(seen)[0]) == ("held", "unknown")
    messages = [each.finding.message for each in seen.findings if each.response == 0]
    assert any(FULL in each for each in messages)
    assert any(each.startswith("the stop reason was not recorded, and only parts of the arg") for each in messages)
    text = read(tmp_path, prompt("go"), {**whole, "truncated_fields": ["content"]}, result, reply("Done."))
    assert text.responses[0].verdicts[0].admission.value == "ready"


def test_an_error_is_the_result_of_a_call_or_of_a_request(tmp_path):
    why = "There was a problem parsing the tool call. It does not exist."
    seen = read(tmp_path, prompt("go"), reply(None, "view_file"), failure(why), reply("Sorry."))
    (result,) = seen.responses[1].exchange.request.messages[0].results
    assert (result.name, result.text, result.is_error) == ("view_file", why, True)
    assert [each.why for each in seen.inputs[0].skipped] == []
    seen = read(tmp_path, prompt("go"), failure("", content="The quota is used up."))
    assert (words(seen), stops(seen)) == (["ERROR"], ["error"])
    seen = read(tmp_path, prompt("go"), reply("Hi."), failure("A hook failed."))
    assert [each.why for each in seen.inputs[0].skipped] == ["an error of the agent: A hook failed."]


@pytest.mark.parametrize(("row", "rule"), [
    (failure("There was a problem parsing the tool call. It has no path."), "agent.refused_held_call"),
    (step("CODE_ACTION", content="written"), "agent.ran_call_of_unseen_end"),
])
def test_a_call_that_could_not_be_parsed_did_not_run(row, rule, tmp_path):
    seen = read(tmp_path, prompt("go"), reply(None, "write", truncated_fields=["tool_calls"]), row, reply("On."))
    assert [(each.finding.rule, each.finding.severity) for each in seen.findings
            if each.finding.rule.startswith("agent.")] == [(rule, Severity.INFO)]


def test_messages_of_the_agent_and_a_compaction(tmp_path):
    seen = read(
        tmp_path, prompt("go"), step("CONVERSATION_HISTORY", "SYSTEM"), reply("Hi."),
        step("SYSTEM_MESSAGE", "SYSTEM", content="A task ended."), step("CHECKPOINT", "SYSTEM", content="So far."),
        reply("Ho."),
    )
    assert "no exchange: CHECKPOINT (1), CONVERSATION_HISTORY (1)" in "\n".join(seen.inputs[0].notices)
    assert "transcript.compacted" in [each.finding.rule for each in seen.findings if each.response == 1]
    assert seen.responses[1].exchange.request.messages[0].text == "A task ended."
    assert rules(seen)[0] == "transcript.absent"


def test_a_step_that_is_not_done_has_no_known_end(tmp_path):
    seen = read(tmp_path, prompt("go"), reply("Hi.", status="RUNNING"), prompt("more"), reply("Ho."))
    assert words(seen)[0] == "END NOT RECORDED"


@pytest.mark.parametrize("home", ["antigravity", "antigravity-cli"])
def test_a_session_is_named_by_its_folder(home, tmp_path):
    folder = tmp_path / ".gemini" / home / "brain" / "c-1" / ".system_generated" / "logs"
    folder.mkdir(parents=True)
    (folder / "transcript_full.jsonl").write_text(lines(prompt("go"), reply("Hi.")))
    (given,) = open_paths([str(folder / "transcript_full.jsonl")]).inputs
    assert given.about is not None
    assert given.about.id == "c-1"


def test_a_member_of_another_type_is_passed_over_and_named(tmp_path):
    seen = read(tmp_path, prompt("go"), reply("Hi.", status=7))
    assert "line 2: status is a number, but text was expected; it was skipped" in " ".join(seen.inputs[0].notices)


def both_files(folder: Path, *shortened: Row) -> list[str]:
    """The whole file of a conversation of one turn, and the file with shortened texts."""
    folder.mkdir(exist_ok=True)
    result = step("LIST_DIRECTORY", content="a.md")
    whole = (prompt("go"), reply("Look at it.", "ls"), result, reply("Done."), prompt("more"), reply("Yes."))
    names = [folder / name for name in ("transcript.jsonl", "transcript_full.jsonl")]
    names[0].write_text(lines(*(shortened or (*whole[:1], {**reply("Look", "ls"), "truncated_fields": ["tool_calls"]},
                                              *whole[2:]))))
    names[1].write_text(lines(*whole))
    return list(map(str, names))


@pytest.mark.parametrize("turned", [False, True])
def test_of_both_files_of_a_conversation_only_the_whole_one_counts(tmp_path, turned):
    part, whole = both_files(tmp_path)
    given = [whole, part] if turned else [part, whole]
    said_of = f"{part}: a shortened copy of {whole}, whose turns are counted; they are not counted twice"
    for inputs in (open_paths(given).inputs, [each for group in open_each(given, api=None, profile=None)
                                              for each in group.recording.inputs]):
        held = {each.path: each for each in inputs}
        assert (held[whole].responses, held[part].responses, held[part].same_as) == (3, 0, whole)
        assert held[part].notices == (said_of,)
    report = check_paths(given, list(RULES), jobs=1)
    assert len(report.turns) == len(check_paths([whole], list(RULES), jobs=1).turns) == 2
    assert report.notices == [f"{part}: a shortened copy of {whole}, whose turns are checked"]
    assert report.problems == check_paths([whole], list(RULES), jobs=1).problems


def test_a_folder_with_both_files_is_read_once(tmp_path):
    part, whole = both_files(tmp_path)
    held = {each.path: each.responses for each in open_paths([str(tmp_path)]).inputs}
    assert (held[part], held[whole]) == (0, 3)


def test_the_shortened_file_alone_counts(tmp_path):
    part, _ = both_files(tmp_path)
    other = both_files(tmp_path / "other")[1]
    assert [each.responses for each in open_paths([part, other]).inputs] == [3, 3]


def test_two_files_of_which_none_is_shortened_count_once(tmp_path):
    part, whole = both_files(tmp_path, prompt("go"), reply("Done."))
    Path(whole).write_text(Path(part).read_text())
    assert {each.path: each.responses for each in open_paths([part, whole]).inputs} == {part: 0, whole: 1}
