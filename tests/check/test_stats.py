"""`inspector check --stats`: endings by model, agent and day, tokens of lost turns; text, JSON, CSV and a page."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser

import pytest

from inspector.check import check_file, merge
from inspector.check.stats import FORMS, _share, _split, as_csv, document, page, text
from tests.scenes.recordings import ASKS, chat, lines, pair_of, user

WHOLE = pair_of(ASKS, chat("All of it.", tokens=10), max_tokens=50)
LOST = pair_of([user("Two?")], chat("Half of it", "length", tokens=40), max_tokens=40)
OTHER = pair_of([user("Three?")], {**chat("No.", "content_filter", tokens=5), "model": "=m<2>"}, max_tokens=50)
DAY = "2026-03-04T05:06:07Z"


@pytest.fixture
def report(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines({**WHOLE, "timestamp": DAY}, LOST))
    (tmp_path / "b.jsonl").write_bytes(lines({**OTHER, "timestamp": DAY}))
    return merge([check_file(tmp_path / "a.jsonl"), check_file(tmp_path / "b.jsonl")])


def test_the_numbers_are_those_of_the_turns(report):
    value = document(report)
    assert [value[key] for key in ("files", "turns", "complete", "lost", "output_tokens", "lost_tokens")] == [
        2, 3, 1, 1, 55, 40]
    models = {row["name"]: row for row in value["by_model"]}
    assert models["m-1"]["endings"] == {"COMPLETE": 1, "TRUNCATED": 1}
    assert (models["=m<2>"]["turns"], models["=m<2>"]["lost"]) == (1, 0), "what is filtered is not lost"
    assert [(row["name"], row["turns"]) for row in value["by_day"]] == [("2026-03-04", 2), ("not recorded", 1)]
    assert sum(row["turns"] for row in value["by_agent"]) == 3
    assert {row["name"] for row in value["by_ending"]} == {"COMPLETE", "TRUNCATED", "BLOCKED"}


def test_the_page_draws_as_complete_what_the_verdict_counts_as_complete(report):
    """One verdict may be of turns that are complete and of turns whose end is not recorded."""
    one = report.turns[0]
    turns = [one._replace(verdict=word, complete=complete) for word, complete in (
        ("CALL REPAIRED", True), ("CALL REPAIRED", False), ("COMPLETE", True), ("MAYBE CUT", False))]
    assert _split(turns, ["CALL REPAIRED"])[:2] == [2, 1]
    assert _split(turns, ["CALL REPAIRED"])[-1] == 1
    assert sum(_split(turns, ["CALL REPAIRED"])) == len(turns)


def test_text_has_bars(report):
    said = text(report)
    assert said.startswith("3 turns in 2 files: 1 complete, 1 lost, 1 neither; 55 output tokens, 40 of them in lost "
                           "turns (73 %)")
    assert "  m-1    " + "█" * 30 + " 1 of 2 (50 %)" in said


@pytest.mark.parametrize(("part", "whole", "said"), [
    (0, 0, ""), (0, 9, " (0 %)"), (9, 9, " (100 %)"), (2, 3, " (67 %)"),
    (66, 41_891, " (under 1 %)"), (6, 1_000, " (1 %)"), (999, 1_000, " (over 99 %)"),
])
def test_a_share_is_rounded_to_the_nearest_but_never_to_none_or_all(part: int, whole: int, said: str) -> None:
    """66 of 41,891 tokens were 0 %."""
    assert _share(part, whole) == said


def test_csv_agrees_with_json_and_is_no_formula(report):
    rows = list(csv.DictReader(io.StringIO(as_csv(report))))
    of_models = [row for row in rows if row["by"] == "model"]
    counts = ["turns", "complete", "lost", "output_tokens", "lost_tokens"]
    assert [*rows[0]] == ["by", "name", "ending", *counts]
    assert [key for key in document(report) if key in rows[0]] == counts, "of one list"
    for key in counts:
        assert sum(int(row[key]) for row in of_models) == document(report)[key], key
    assert {row["name"] for row in of_models} == {"m-1", "'=m<2>"}


def test_the_page_is_whole_inert_and_needs_nothing_else(report):
    seen: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append(tag)
            assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attrs}

    made = page(report)
    Tags().feed(made)
    assert "script" not in seen
    assert seen.count("svg") == 4
    assert "1 complete, 1 lost, 1 neither; 55 output tokens, 40 of them in lost turns" in made, "as the text says"
    assert "=m&lt;2&gt;" in made
    assert "<m" not in made.replace("<meta", "")
    assert "default-src 'none'" in made
    assert 'name="viewport"' in made, "a telephone draws it at its own width"
    assert made.count('<div class="wide">') == 7, "what is wider moves by itself"


def test_an_empty_report_has_a_page_too(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    empty = check_file(tmp_path / "a.json")
    for form in FORMS.values():
        assert form(empty)


def test_the_command(inspector, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(LOST))
    said = inspector("check", path, "--stats", "--format", "json")
    assert (said.code, json.loads(said.out)["lost"]) == (0, 1)
    for form, begins in (("text", "1 turn in 1 file: "), ("csv", "by,name,ending,"), ("html", "<!doctype html>")):
        assert inspector("check", path, "--stats", "--format", form).out.lower().startswith(begins)
    assert inspector("check", path, "--stats", "--format", "sarif").code == 2
    assert "without --stats, one of text" in inspector("check", path, "--format", "html").err
    assert inspector("check", path, "--stats").out.startswith("1 turn in 1 file: ")
    for option in ("--select", "--ignore", "--baseline", "--write-baseline"):
        assert f"{option} is about problems" in inspector("check", path, "--stats", option, "x").err
    assert "--fail-on is about problems" in inspector("check", path, "--stats", "--fail-on", "error").err
