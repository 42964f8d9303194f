"""Exports of runs that are not the recording: each form says who gave the answers, or why it cannot be made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from inspector.config.settings import settings_of
from inspector.export import FORMS, ExportScope, form_files
from inspector.export.exchange_files import ORIGINS, UNSENT, why_unreported
from inspector.live.branch_run import new_name, run_branch
from inspector.live.scripted import MADE_UP_MARK, stand_in_request
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.replay.rerun import edit_step, rerun
from inspector.report.facts import View, view
from inspector.report.run_answers import answer_at
from inspector.sessions import open_paths
from inspector.whatif.branch_lines import edit_stretches
from inspector.whatif.tree import ORIGINAL, Node, Tree
from loop_core.errors import CallerError
from loop_core.turn.trace import Fidelity
from loop_core.values import Stop
from tests.scenes.live import answer, streams
from tests.scenes.live_branch import (
    PATIENT,
    chat_url,
    completion,
    entry,
    har,
    look_ahead,
    read,
    request_body,
    user,
    write_two_turns,
)
from tests.scenes.loopback import Fake

CHAT = "openai_chat"


def two_turns(folder: Path, **more: object) -> str:
    """A turn that was cut and continued, and a turn whose only answer was cut."""
    url = "https://api.openai.com/v1/chat/completions"
    body = request_body(**more)
    going_on = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "One, two, "},
                                     user("Continue exactly from where you left off.")]}
    second = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "One, two, three."},
                                   user("And in German?")]}
    return har(folder / "two.har", entry(url, body, completion("One, two, ", "length")),
               entry(url, going_on, completion("three.", "stop")),
               entry(url, second, completion("Eins, zwei, ", "length")))


def stood_in(path: str, folder: Path, turn: int) -> View:
    """The run in which a stand-in answers a turn."""
    first = read(path)
    since = first.turns[turn - 1].first
    wanted = settings_of({"max_tokens": "400"}, first.settings)
    name = new_name(by_stand_in=True)
    heard, failure = run_branch(stand_in_request(first, wanted, since, {}), name, folder, PATIENT)
    assert failure is None
    return branch(first, name, heard, wanted, since).view


def asked_live(path: str, folder: Path, turn: int, since: int | None = None) -> View:
    """The run in which a server answers a turn again."""
    first = read(path)
    since = first.turns[turn - 1].first if since is None else since
    name = new_name(False)
    heard, failure = run_branch(look_ahead(first, since), name, folder, PATIENT)
    assert failure is None
    return branch(first, name, heard, first.settings, since).view


def branch(first, name, heard, wanted, since) -> Node:  # type: ignore[no-untyped-def]
    first.case.live_runs[name] = heard
    tree = Tree(view(first))
    return tree.add(tree.find(ORIGINAL), settings_of({"live": name}, wanted), since)[0]


def simulation(path: str) -> View:
    """The run in which a smaller budget cuts the recorded output again."""
    first = read(path)
    return view(rerun(first, settings_of({"simulate": "yes", "max_tokens": "2"}, first.settings)), view(first))


def export_text(seen: View, form: str, turn: int | None = None, step: int | None = None) -> str:
    """The text of one form, for a turn and for the answer at a step."""
    facts = None if step is None else answer_at(seen, step)
    made = FORMS[form].make(ExportScope(seen, None if turn is None else seen.turns[turn - 1], facts))
    return "\n".join(made.values())


# -- who gave the answers --------------------------------------------------------------------------------------------


def test_a_bug_report_of_an_answer_that_a_stand_in_made_up_is_refused(tmp_path: Path) -> None:
    seen = stood_in(two_turns(tmp_path), tmp_path, 2)
    with pytest.raises(CallerError, match="turn 2 is SIMULATED, no provider sent it; R: report the original"):
        export_text(seen, "bug", 2)


def test_a_turn_beside_that_of_a_stand_in_is_reported_as_if_there_were_none(tmp_path: Path) -> None:
    path = two_turns(tmp_path)
    seen, original = stood_in(path, tmp_path, 2), view(read(path))
    assert export_text(seen, "bug", 1) == export_text(original, "bug", 1)
    assert "stand-in" not in export_text(seen, "bug", 1)


def test_a_simulated_turn_is_not_reported_though_its_recorded_answer_is_at_hand(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="turn 2 is SIMULATED"):
        export_text(simulation(two_turns(tmp_path)), "bug", 2)


def test_a_turn_that_got_no_answer_in_this_run_is_not_reported(tmp_path: Path) -> None:
    first = read(two_turns(tmp_path))
    seen = view(rerun(first, settings_of({"simulate": "yes", "max_tokens": "400"}, first.settings)), view(first))
    assert seen.turns[1].verdict.word == "UNANSWERED"
    with pytest.raises(CallerError, match="turn 2 has no provider's answer in this run; R: report the original"):
        export_text(seen, "bug", 2)


def test_an_edited_turn_that_nobody_was_asked_is_not_reported(tmp_path: Path) -> None:
    first = read(two_turns(tmp_path))
    (_, edit), = edit_stretches(first, ["2.user=And in French?"], None)
    settings = settings_of(edit, first.settings)
    seen = view(rerun(first, settings, edit_step(first, settings.edits[0])), view(first))
    with pytest.raises(CallerError, match="turn 2 was edited, and no provider answered that; R: report the original"):
        export_text(seen, "bug", 2)


def test_every_reason_against_a_report_is_tried() -> None:
    assert len(UNSENT) == 3


def test_a_recording_that_is_simulated_itself_is_not_reported(tmp_path: Path) -> None:
    (session,) = form_files(stood_in(two_turns(tmp_path), tmp_path, 2), "session", 2).values()
    again = view(replay(open_case(open_paths(["-"], stdin=session.encode()))))
    assert why_unreported(again, again.turns[0]).endswith("no provider sent it; md and html show it")


def test_a_report_of_a_live_turn_names_its_file_and_quotes_its_answer_alone(tmp_path: Path, fake: Fake) -> None:
    fake.answers = [streams(CHAT, answer(CHAT, "Un, deux, ", Stop.MAX_TOKENS)),
                    streams(CHAT, answer(CHAT, "tro", Stop.MAX_TOKENS))]
    first = read(two_turns(tmp_path))
    settings = settings_of({"continuation_max_attempts": "1"}, first.settings)
    name = new_name(False)
    request = look_ahead(first, first.turns[1].first, base=fake.url, continuation_max_attempts=1)
    heard, _ = run_branch(request, name, tmp_path, PATIENT)
    seen = branch(first, name, heard, settings, first.turns[1].first).view
    files = FORMS["bug"].make(ExportScope(seen, seen.turns[1]))
    (report,) = [text for path, text in files.items() if path.endswith(".md")]
    (session,) = [text for path, text in files.items() if path.endswith(".jsonl")]
    found = report.replace("\\", "")
    assert f"Found in 2 LIVE answers of {fake.url}/v1/chat/completions ({name}.jsonl), " in found
    assert "), asked again from a step of two.har, turn 2 of 2." in found
    assert report.startswith("# Bug report: TRUNCATED\n")
    assert "Eins" not in report + session
    assert "tro" in report + session
    assert "live=" not in report
    assert "asked live again" in provenance(session)


def provenance(session: str) -> str:
    return str(json.loads(session.splitlines()[0])["provenance"])


# -- the other forms -------------------------------------------------------------------------------------------------


def test_a_session_of_a_branch_holds_the_run_itself_and_says_who_gave_its_answers(tmp_path: Path) -> None:
    seen = stood_in(two_turns(tmp_path), tmp_path, 2)
    session = export_text(seen, "session")
    assert provenance(session) == (
        "exported from a run with 2 answers recorded and 1 answer SIMULATED, sent by no provider, credentials masked")
    again = view(replay(open_case(open_paths(["-"], stdin=session.encode()))))
    assert [turn.joined_text.text for turn in again.turns] == [turn.joined_text.text for turn in seen.turns]
    assert [facts.simulated for facts in again.responses] == [False, False, True]
    assert "Eins, zwei, " in session
    assert session.count('"type": "request"') == 3  # the recorded answer of turn 2 is not part of this run


def test_a_session_of_the_recording_is_exported_from_a_recording(tmp_path: Path) -> None:
    session = export_text(view(read(two_turns(tmp_path))), "session")
    assert provenance(session) == "exported from a recording, credentials masked"


def test_every_origin_has_its_words() -> None:
    assert {each: ORIGINS[each] for each in Fidelity} == {
        Fidelity.RECORDED: "recorded", Fidelity.LIVE: "asked live again",
        Fidelity.SIMULATED: "SIMULATED, sent by no provider"}


def test_a_session_cannot_hold_answers_that_a_simulation_made(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="turn 1 has SIMULATED answers, which were never sent; md and json show them"):
        export_text(simulation(two_turns(tmp_path)), "session")


@pytest.mark.parametrize("form", ["md", "html", "text"])
@pytest.mark.parametrize(("made", "says"), [
    (lambda path, folder: stood_in(path, folder, 2), ("SIMULATED response 4", "SIMULATED: answered by a stand-in",
                                                      "-stand-in.jsonl", MADE_UP_MARK)),
    (lambda path, folder: simulation(path), ("SIMULATED response of step 2", "max_tokens=2")),
])
def test_a_document_names_the_made_answers_and_their_file(
    form: str, made: Callable[[str, Path], View], says: Iterable[str], tmp_path: Path
) -> None:
    seen = made(two_turns(tmp_path), tmp_path)
    text = export_text(seen, form).replace("\\", "")
    for each in says:
        assert each in text
    assert "ettings of this run: " in text


def test_a_document_of_the_recording_has_no_settings_and_no_other_files(tmp_path: Path) -> None:
    text = export_text(view(read(two_turns(tmp_path))), "md")
    assert "Settings of this run" not in text
    assert text.count("two.har") == 1
    assert "settings" not in json.loads(export_text(view(read(two_turns(tmp_path))), "json"))


def test_the_document_of_a_what_if_names_its_settings_and_their_steps(tmp_path: Path) -> None:
    first = read(two_turns(tmp_path))
    wanted = settings_of({"continuation_max_attempts": "1"}, first.settings)
    made = json.loads(export_text(view(rerun(first, wanted, 3), view(first)), "json"))
    assert made["settings"] == "attempts=1 from step 4"


def test_the_text_says_that_a_simulated_answer_is_in_no_file(tmp_path: Path) -> None:
    text = export_text(simulation(two_turns(tmp_path)), "text")
    assert "SIMULATED response of step 2 (in no file: cut again at max_tokens 2)" in text


def test_a_merged_text_that_was_made_up_says_so_above_it(tmp_path: Path) -> None:
    text = export_text(stood_in(two_turns(tmp_path), tmp_path, 2), "md")
    assert text.count("### Merged text\n") == 1
    assert text.count("### Merged text, SIMULATED\n") == 1


def test_a_request_to_a_stand_in_cannot_be_sent_again(tmp_path: Path) -> None:
    seen = stood_in(two_turns(tmp_path), tmp_path, 2)
    with pytest.raises(CallerError, match="SIMULATED response 4: no provider was asked; choose a recorded one"):
        export_text(seen, "curl", step=len(seen.steps) - 1)


def test_a_fixture_of_a_made_up_answer_is_not_called_recorded(tmp_path: Path) -> None:
    seen = stood_in(two_turns(tmp_path), tmp_path, 2)
    files = FORMS["fixture"].make(ExportScope(seen, None, answer_at(seen, len(seen.steps) - 1)))
    ((name, content),) = files.items()
    assert name == "test_session_simulated_4.py"
    assert content.startswith('"""openai_chat, SIMULATED response 4."""')
    assert "def test_simulated_response" in content
    assert '"""Recorded: openai_chat, response 1."""' in export_text(seen, "fixture", step=1)


def test_a_live_answer_says_so_in_every_form_that_names_it(tmp_path: Path, fake: Fake) -> None:
    fake.answers = [streams(CHAT, answer(CHAT, "One, two, three.", Stop.END_TURN))]
    seen = asked_live(write_two_turns(fake.url, tmp_path / "s.har"), tmp_path, 1)
    at = seen.turns[0].run.deciding_step
    for form in ("md", "html", "text"):
        assert "LIVE response 4" in export_text(seen, form)
        assert "LIVE: asked again" in export_text(seen, form)
    assert '"""openai_chat, LIVE response 4."""' in export_text(seen, "fixture", step=at)
    assert chat_url(fake.url) in export_text(seen, "curl", step=at)
    assert json.loads(export_text(seen, "json"))["responses"][3]["fidelity"] == "LIVE"


@pytest.mark.parametrize("form", ["otlp", "otlp-content"])
def test_spans_and_points_of_made_up_answers_say_that_they_are(form: str, tmp_path: Path) -> None:
    files = FORMS[form].make(ExportScope(stood_in(two_turns(tmp_path), tmp_path, 2)))
    marked = {"key": "loop_inspector.fidelity", "value": {"stringValue": "SIMULATED"}}
    for name, text in files.items():
        assert json.dumps(marked, separators=(",", ":")) in text, name
    plain = FORMS[form].make(ExportScope(view(read(two_turns(tmp_path)))))
    assert not any("SIMULATED" in text for text in plain.values())
    spans = json.loads(next(text for name, text in files.items() if "traces" in name))
    turns = [{each["key"]: each["value"] for each in span["attributes"]}["loop_inspector.fidelity"]["stringValue"]
             for span in spans["resourceSpans"][0]["scopeSpans"][0]["spans"] if "parentSpanId" not in span]
    assert turns == ["RECORDED", "SIMULATED"]
