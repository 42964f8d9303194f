"""Text, JSON, the page and the app's first line say the same verdict, over every sample and case; the JSON is valid."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path

import jsonschema_rs

from inspector.export.pages import blocks
from inspector.export.pages import html as page_of
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain import text
from inspector.report.explain_document import document
from inspector.report.facts import View, view
from inspector.report.lines import header
from inspector.report.lines.glyphs import keyed
from inspector.report.lines.spans import Tone, text_of
from inspector.report.schemas import explain_schema
from inspector.report.verdict import OTHER_IDS
from inspector.sessions import open_paths
from tests.scenes.rows import each_row

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(os.environ.get("LOOP_INSPECTOR_CASES") or ROOT.parent / "shared" / "cases")
FILES = sorted((ROOT / "sample_sessions").glob("*.jsonl")) + sorted(
    path for folder in ("endings", "readings") for path in (CASES / folder).glob("*") if path.is_file())
VALID = jsonschema_rs.validator_for(explain_schema())


def open_view(path: Path) -> View:
    return view(replay(open_case(open_paths([str(path)]))))


def squeeze(said: str) -> str:
    return re.sub(r"\s+", " ", said).strip()


@each_row("path", FILES)
def test_every_output_says_the_same_verdict(path: Path) -> None:
    seen = open_view(path)
    made = json.loads(json.dumps(document(seen)))
    VALID.validate(made)
    if made["verdict"] is None:
        assert not made["turns"]
        return
    said = made["verdict"]
    assert said in [turn["verdict"] for turn in made["turns"]]
    advice = said["advice"]["text"] if said["advice"] else ""
    line = squeeze(text(seen).split("\n", 1)[0])
    word = re.match(r"[A-Z ,]*[A-Z]", line)
    assert word is not None
    assert (OTHER_IDS.get(word.group()) or re.sub(r"[ ,]+", "_", word.group().lower())) == said["id"]
    place = re.search(r"turn (\d+) of (\d+)", line)
    assert place is not None
    assert int(place[2]) == len(made["turns"])
    assert made["turns"][int(place[1]) - 1]["verdict"] == said
    sentence = squeeze(said["text"])
    head = f"{word.group()} turn {place[1]} of {place[2]}"
    assert line == squeeze(" · ".join([head, sentence, *([advice] if advice else [])]))
    shown = squeeze(text_of(header.verdict(seen)))
    keys = squeeze(text_of(keyed(advice, Tone.KEY)))  # of these outputs only the app has keys
    assert re.sub(r"(^|; )[FL] ", r"\1", keys) == advice
    assert shown.split(" ", 1)[1] == squeeze(" · ".join([head, sentence, *([keys] if advice else [])]))
    page = squeeze(html.unescape(re.sub(r"<[^>]*>", "", page_of(blocks(seen)))))
    assert line in page


def test_the_key_of_an_advice_stands_before_what_it_does_and_after_a_warning() -> None:
    """F runs the advice or asks for it; it does not carry out that a held call must never run."""
    rest = "raise max_tokens; only a live run can show what is enough"
    assert text_of(keyed(f"never run a held call; {rest}", Tone.KEY)) == f"never run a held call; F {rest}"
    assert text_of(keyed(rest, Tone.KEY)) == f"F {rest}"
    assert text_of(keyed("change the prompt", Tone.KEY)) == "change the prompt"


def test_the_schema_refuses_another_document() -> None:
    made = json.loads(json.dumps(document(open_view(FILES[0]))))
    assert VALID.is_valid(made)
    for change in ({"schema": "loop-inspector/explain/1"}, {"verdict": {"id": "complete"}}, {"extra": 1}):
        assert not VALID.is_valid({**made, **change})
    for missing in made:
        if missing != "filter":
            assert not VALID.is_valid({name: value for name, value in made.items() if name != missing})
