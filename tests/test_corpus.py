"""Acceptance over the recorded exchanges: the whole folder read, replayed and explained once, beside independent facts.

The traffic is read where it lies and skipped where it is absent (LOOP_INSPECTOR_CORPUS). An exception is listed by its
id, with the reason that a look at its bytes gave; a list that is longer than needed fails as well.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from inspector.config.settings import Settings, settings_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain import text
from inspector.report.explain_document import document
from inspector.report.facts import View, view
from inspector.sessions import open_paths, redact
from inspector.whatif.tree import branch
from loop_core.turn.trace import step_key

ROOT = Path(os.environ.get("LOOP_INSPECTOR_CORPUS") or Path(__file__).resolve().parents[2] / "shared" / "corpus")
APIS = frozenset(
    {
        "openai_chat",
        "openai_responses",
        "anthropic_messages",
        "gemini_generate",
        "bedrock_converse",
        "ollama_chat",
        "gemini_interactions",
        "openai_completions",
        "bedrock_invoke",
        "cohere_chat",
        "ollama_generate",
        "anthropic_complete",
    }
)

Row = dict[str, Any]


@dataclass(frozen=True)
class CorpusRun:
    """The folder as the program sees it, and what it cost."""

    view: View
    document: dict[str, Any]
    files: list[Path]
    loading: float
    """CPU seconds to read and decode."""
    beyond: float
    """CPU seconds for everything else: judging, replaying, the view, the document."""


@pytest.fixture(scope="module")
def corpus() -> CorpusRun:
    if not (ROOT / "har").is_dir():
        pytest.skip("the recorded traffic is not here (set LOOP_INSPECTOR_CORPUS)")
    began = time.process_time()
    loaded = open_paths([str(ROOT / "har")])
    read = time.process_time()
    seen = view(replay(open_case(loaded)))
    made = document(seen)
    return CorpusRun(seen, made, sorted((ROOT / "har").rglob("*.har")), read - began, time.process_time() - read)


@pytest.fixture(scope="module")
def rows(corpus: CorpusRun) -> list[tuple[Row, Row]]:
    """Each independent fact about an exchange of our APIs, beside what we say of the same entry."""
    said = {(response["path"], response["entry"]): response for response in corpus.document["responses"]}
    with (ROOT / "expected.jsonl").open(encoding="utf-8") as lines:
        facts = [row for row in map(json.loads, lines) if row["api"] in APIS]
    assert len(facts) > 1000
    missing = [row["id"] for row in facts if (str(ROOT / "har" / row["har"]), row["entry"]) not in said]
    assert missing == []
    return [(row, said[str(ROOT / "har" / row["har"]), row["entry"]]) for row in facts]


# -- reading ----------------------------------------------------------------------------------------------------------


def test_every_file_is_read_and_every_entry_counted(corpus: CorpusRun) -> None:
    by_path = {given["path"]: given for given in corpus.document["inputs"]}
    skipped_files = {skipped["why"].partition(":")[0] for skipped in by_path[str(ROOT / "har")]["skipped"]}
    for path in corpus.files:
        entries = json.loads(path.read_text("utf-8"))["log"]["entries"]
        assert str(path) not in skipped_files
        given = by_path[str(path)]
        assert "error" not in given, path
        of_file = [r["entry"] for r in corpus.document["responses"] if r["path"] == str(path)]
        assert len(of_file) == given["responses"]
        assert sorted([*of_file, *(skipped["entry"] for skipped in given["skipped"])]) == list(range(len(entries))), (
            path
        )


def test_the_api_is_the_one_that_was_called(rows: list[tuple[Row, Row]]) -> None:
    assert [row["id"] for row, said in rows if said["api"] != row["api"]] == []


def test_nothing_of_another_api_is_taken_for_one_of_the_six(corpus: CorpusRun, rows: list[tuple[Row, Row]]) -> None:
    assert len(corpus.document["responses"]) == len(rows)


def test_every_response_stands_in_one_turn(corpus: CorpusRun) -> None:
    made = corpus.document
    indices = sorted(index for turn in made["turns"] for index in turn["responses"])
    assert indices == list(range(len(made["responses"])))
    assert len({turn["id"] for turn in made["turns"]}) == len(made["turns"])
    assert all(response["state"] is not None for response in made["responses"])
    assert made == json.loads(json.dumps(made, ensure_ascii=True))


def test_what_is_said_can_be_read_aloud(corpus: CorpusRun) -> None:
    said = text(corpus.view)
    assert [character for character in set(said) if character < " " and character != "\n"] == []
    said.encode("utf-8")


# -- stop reasons -----------------------------------------------------------------------------------------------------


def reader_word(row: Row) -> str | None:
    """The last word of the first choice, as an independent reader found it; the reason behind `incomplete`."""
    words = row["raw_stop_reasons"]
    if not words or words[0] is None:
        return None
    reason = row["other_fields"].get("incomplete_reason")
    return f"{words[0]}:{reason}" if row["api"] == "openai_responses" and reason else str(words[0])


def test_the_raw_stop_reason_is_the_one_that_was_sent(rows: list[tuple[Row, Row]]) -> None:
    assert [
        (row["id"], reader_word(row), said["raw_stop_reason"]) for row,
        said in rows if said["raw_stop_reason"] != reader_word(row)
    ] == []


ALLOWED: dict[str, set[str]] = {
    "ok_text": {"end_turn"},
    "ok_empty": {"end_turn"},
    "stop_sequence": {"end_turn"},
    "tool_call": {"tool_call"},
    "truncated_text": {"max_tokens"},
    "truncated_empty": {"max_tokens"},
    "truncated_tool": {"max_tokens"},
    "masked_truncated_tool": {"max_tokens"},
    "bad_tool_args_unannounced": {"max_tokens"},
    "malformed_tool": {"malformed_tool_call"},
    "filtered_or_refused": {"safety_blocked"},
    "pause_turn": {"paused"},
    "background_pending": {"paused"},
    "no_stop_reason": {"unknown", "interrupted"},  # whole, or ended by its terminator; else the stream broke off
    "incomplete_other": {"interrupted"},
    "no_terminal_event": {"interrupted"},
    "error_midstream": {"error"},
    "error_body_200": {"error"},
    "http_error": {"error"},
    "empty_body": {"unknown"},
}
"""What an independent reader calls a response -> the words that we may have for it."""
EXCEPTIONS: dict[str, tuple[str, str]] = {
    "ruby_llm-fdddee2bfb": ("context_window_exceeded", "HTTP 400 whose body says that the prompt is too long"),
    "rig-abfbe17368": ("context_window_exceeded", "HTTP 400 whose body says that the prompt is too long"),
    "ruby_llm-9858f147c6": ("context_window_exceeded", "HTTP 400 whose body says that there are too many tokens"),
    "llama-stack-1910e5528a": ("context_window_exceeded", "HTTP 400 whose body says that the context is too small"),
    "openllmetry-d4477d2e39": ("safety_blocked", "the error body of Azure's content filter"),
    "pydantic-ai-10d08fc4f4": ("error", "an error, then length, then [DONE]: the error is the graver"),
    "pydantic-ai-2ccddf3742": ("malformed_tool_call", "the call has no `arguments` at all: nothing shows a cut"),
    "pydantic-ai-2feef7fe2a": (
        "end_turn",
        "an empty legacy `function_call` beside the text, and no `tool_calls`: nothing was called",
    ),
    "ai-99dfc22d42": ("tool_call", "the reader of the facts counts no calls of streamed steps; the events hold one"),
    "rig-6f95dfbfe1": ("tool_call", "as ai-99dfc22d42: two calls"),
    "ai-67edca6fd1": ("tool_call", "a tool_search_call with `execution: client`: the client has to run it"),
}
"""Exchanges that deserve another word than their kind, and why."""


def test_every_kind_lands_in_its_category(rows: list[tuple[Row, Row]]) -> None:
    odd: dict[str, str] = {}
    for row, said in rows:
        for kind in row["kinds"]:
            if said["stop_reason"] not in ALLOWED[kind]:
                odd[row["id"]] = said["stop_reason"]
    assert odd == {name: word for name, (word, _) in EXCEPTIONS.items()}
    met = {kind for row, _ in rows for kind in row["kinds"]}
    assert met <= set(ALLOWED)
    assert len(met) >= 15


def test_what_is_not_whole_is_never_finished(rows: list[tuple[Row, Row]]) -> None:
    for row, said in rows:
        if NOT_WHOLE & set(row["kinds"]):
            assert said["stop_reason"] not in ("end_turn", "tool_call"), row["id"]
            assert said["state"] not in ("Complete", "ExecuteTools"), row["id"]


def test_a_reason_of_the_provider_has_its_place_in_the_bytes(corpus: CorpusRun) -> None:
    """The word itself stands where the evidence says, in the bytes that were recorded."""
    looked = 0
    for facts in corpus.view.responses:
        raw = facts.exchange.response.raw_stop_reason
        for seen in facts.exchange.response.stop_reason.evidence[:1]:
            at = seen.at
            if raw is None or at is None or at.start is None or at.part.value != "body" or ":" in raw:
                continue
            piece = facts.exchange.body[at.start : at.end]
            if at.pointer and at.pointer.rpartition("/")[2] in (
                "finish_reason",
                "stop_reason",
                "finishReason",
                "stopReason",
            ):
                if facts.exchange.api == "bedrock_invoke" and b'"bytes":"' in piece:
                    piece = base64.b64decode(piece.partition(b'"bytes":"')[2].partition(b'"')[0])  # a chunk's event
                assert raw.encode() in piece, facts.exchange.path
                looked += 1
    assert looked > 600


# -- calls ------------------------------------------------------------------------------------------------------------

NOT_WHOLE = frozenset(
    {
        "truncated_text",
        "truncated_empty",
        "truncated_tool",
        "masked_truncated_tool",
        "bad_tool_args_unannounced",
        "malformed_tool",
        "no_stop_reason",
        "no_terminal_event",
        "incomplete_other",
        "error_midstream",
        "error_body_200",
        "http_error",
        "filtered_or_refused",
        "pause_turn",
        "background_pending",
        "empty_body",
    }
)
CLEAN = frozenset({"tool_call", "ok_text", "ok_empty", "stop_sequence"})
REJECTED: dict[str, str] = {
    "llama-stack-fc9265723e": 'its schema wants a boolean, and "true" was sent as text',
    "llama-stack-fe5bc3f426": "its schema wants an object, and a list was sent as text",
    "dd-trace-py-6ec9f05501": "no tool of its name is declared",
}
"""Calls that are complete under a clean stop and yet not ready, and why."""


def pairs(row: Row, said: Row) -> Iterator[tuple[Row, Row]]:
    """The independent reading of each call beside ours; only of the first choice, and phantoms left out."""
    theirs = [tool for tool in row["tools"] if tool["name"]]
    yield from zip(theirs, said["tool_calls"], strict=False)


def test_no_call_of_a_response_that_is_not_whole_is_ready(rows: list[tuple[Row, Row]]) -> None:
    held = Counter(
        call["verdict"] for row, said in rows if NOT_WHOLE & set(row["kinds"]) for call in said["tool_calls"]
    )
    assert set(held) == {"held"}
    assert held["held"] >= 20


def test_no_call_that_is_cut_is_ready_whatever_its_response_says(rows: list[tuple[Row, Row]]) -> None:
    looked = 0
    for row, said in rows:
        for tool, call in pairs(row, said):
            if tool["state"] in ("incomplete", "invalid", "missing", "nonobject"):
                assert call["verdict"] == "held", row["id"]
                looked += 1
    assert looked >= 16


def test_the_calls_and_their_arguments_are_those_that_were_sent(rows: list[tuple[Row, Row]]) -> None:
    looked = 0
    for row, said in rows:
        for tool, call in pairs(row, said):
            assert call["name"] == tool["name"], row["id"]
            if tool["state"] in ("complete", "incomplete", "invalid") and tool["args"]:
                sent = redact.text(tool["args"])[:400]  # two of them are passwords
                assert (call["arguments_raw"] or "").startswith(sent), row["id"]
                looked += 1
    assert looked > 400


def test_complete_calls_under_a_clean_stop_are_ready(rows: list[tuple[Row, Row]]) -> None:
    verdicts: Counter[str] = Counter()
    refused: set[str] = set()
    for row, said in rows:
        if not set(row["kinds"]) <= CLEAN:
            continue
        for tool, call in pairs(row, said):
            if tool["state"] in ("complete", "object"):
                verdicts[call["verdict"]] += 1
                if call["verdict"] != "ready":
                    refused.add(row["id"])
                    assert call["verdict"] == "rejected"
                    assert call["why"]
    assert refused == set(REJECTED)
    assert verdicts["ready"] / verdicts.total() >= 0.995
    assert verdicts.total() > 500


# -- replaying --------------------------------------------------------------------------------------------------------


def test_what_if_nothing_changes(corpus: CorpusRun) -> None:
    made = branch(corpus.view, Settings())
    assert made.difference is None
    assert [step_key(step) for step in made.view.steps] == [step_key(step) for step in corpus.view.steps]
    assert made.changed_turns == ()


@pytest.mark.parametrize(
    "assignment",
    [
        {"continuation_max_attempts": "9"},
        {"continuation_tool_repair_attempts": "4"},
        {"continuation_max_output_chars": "1000000"},
        {"continuation_max_total_completion_tokens": "1000000"},
    ],
)
def test_a_higher_limit_never_shortens_a_turn(corpus: CorpusRun, assignment: dict[str, str]) -> None:
    made = branch(corpus.view, settings_of(assignment, Settings()))
    for then, now in zip(corpus.view.turns, made.view.turns, strict=True):
        if now.final_turn.spend.tokens_assumed and not then.final_turn.spend.tokens_assumed:
            continue  # an answer without counts, cut without a cap: a budget that is set may have been spent on it
        assert now.final_turn.spend.requests >= then.final_turn.spend.requests, then.id


def test_it_costs_a_second_or_two_beyond_reading(corpus: CorpusRun) -> None:
    assert corpus.beyond < 2, f"{corpus.beyond:.2f} s beyond {corpus.loading:.2f} s of reading"
