"""Recorded transcripts: each opens, its answers are as many as its message ids, and no cut of it makes a crash."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.explain import text
from inspector.report.explain_document import document
from inspector.report.facts import view
from inspector.sessions import open_paths

FORMATS = {"claude-code": "claude-code", "pi": "pi", "openclaw": "pi"}


def files(corpus: Path) -> list[tuple[Path, str]]:
    found = [(path, kind) for kind in FORMATS for path in sorted((corpus / "transcripts" / kind).glob("*.jsonl"))]
    assert len(found) >= 14
    return found


def rows(data: bytes) -> list[dict]:
    found = []
    for line in data.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def answers(data: bytes, kind: str) -> int:
    """How many answers there are, counted without the importer: message ids, or runs of rows without one."""
    ids, alone = set(), 0
    last: object = None
    for row in rows(data):
        message = row.get("message")
        if row.get("type") in ("user", "assistant", "message"):
            said = isinstance(message, dict) and message.get("role") == "assistant"
            if said and kind == "claude-code" and message.get("model") == "<synthetic>":
                continue
            if said and message.get("id"):
                ids.add((message["id"], row.get("requestId")))
            elif said:
                alone += 1
            last = row
    assert last is not None
    return len(ids) + alone


def test_each_opens_with_as_many_answers_as_it_has_messages(corpus):
    for path, kind in files(corpus):
        loaded = open_paths([str(path)])
        (given,) = loaded.inputs
        assert (given.format, given.error) == (FORMATS[kind], None), path.name
        assert len(loaded.exchanges) == answers(path.read_bytes(), kind), path.name


def test_each_answer_holds_the_rows_of_its_message_and_no_other(corpus):
    for path, _ in files(corpus):
        lines = path.read_bytes().splitlines()
        for exchange in open_paths([str(path)]).exchanges:
            taken = [lines[number - 1] for number in exchange.lines]
            assert exchange.body == b"\n".join(taken), path.name
            ids = {json.loads(line)["message"].get("id") for line in taken}
            assert len(ids) == 1, path.name


def test_every_reason_says_where_it_comes_from_and_none_is_invented(corpus):
    for path, kind in files(corpus):
        for exchange in open_paths([str(path)]).exchanges:
            stop = exchange.response.stop_reason
            said = [json.loads(row)["message"].get("stop_reason") for row in exchange.body.splitlines()]
            word = next((each for each in reversed(said) if each), None) if kind == "claude-code" else None
            assert stop.raw == word, path.name
            first = stop.evidence[0].rule
            assert first == ("transcript.provider" if word else first)
            assert first.startswith("transcript."), path.name
            if first == "transcript.absent":
                rules = [seen.rule for seen in stop.evidence[1:]]
                assert all(rule.startswith("transcript.inferred.") for rule in rules), path.name
                assert bool(rules) == (stop.normalized != "unknown"), path.name


def test_no_answer_without_a_word_is_shown_as_complete(corpus):
    for path, kind in files(corpus):
        seen = view(replay(open_case(open_paths([str(path)]))))
        for turn in seen.turns:
            last = seen.responses[turn.responses[-1]].exchange.response
            if kind == "claude-code" and last.raw_stop_reason is None:
                assert turn.verdict.word in ("END INFERRED", "END NOT RECORDED"), path.name
            assert "INTERRUPTED" not in turn.verdict.word


def test_turns_follow_what_users_said(corpus):
    seen = open_paths([str(corpus / "transcripts" / "claude-code" / "cc-9f-e3cfdef74d-0.jsonl")])
    assert [turn.user_text for turn in seen.turns] == ["hello", "write a file about geese in docs"]
    assert [[link.place.value for link in turn.links] for turn in seen.turns] == [
        ["request"], ["request", "tool_result", "tool_result"]]
    assert {turn.conversation for turn in seen.turns} == {"c1"}


@pytest.mark.parametrize("part", range(4))
def test_a_file_cut_anywhere_opens_with_what_stands_before(corpus, tmp_path, part):
    chance = random.Random(part)
    whole = [path for path, _ in files(corpus)]
    for path in whole[part::4]:
        data = path.read_bytes()
        breaks = [place + 1 for place, byte in enumerate(data) if byte == 10]
        cuts = {*chance.sample(breaks, min(12, len(breaks))), *(chance.randrange(1, len(data)) for _ in range(12))}
        target = tmp_path / "cut.jsonl"
        for cut in sorted(cuts):
            target.write_bytes(data[:cut])
            loaded = open_paths([str(target)])
            (given,) = loaded.inputs
            before = data[:cut].rpartition(b"\n")[0]
            if given.error is not None:
                assert not loaded.exchanges
                continue
            ended = data[cut - 1 : cut] == b"\n" or data[cut : cut + 1] in (b"\n", b"")
            assert ended or "is cut after" in "\n".join(given.notices), (path.name, cut)
            assert len(loaded.exchanges) >= answers_before(before, path.parent.name), (path.name, cut)
            seen = view(replay(open_case(loaded)))
            assert text(seen)
            json.dumps(document(seen))


def answers_before(data: bytes, kind: str) -> int:
    return answers(data, kind) if any(row.get("type") in ("user", "assistant", "message") for row in rows(data)) else 0


def test_random_bytes_in_a_file_make_no_crash(corpus, tmp_path):
    chance = random.Random(7)
    target = tmp_path / "noise.jsonl"
    for path, _ in files(corpus):
        data = bytearray(path.read_bytes()[:60_000])
        for _ in range(40):
            data[chance.randrange(len(data))] = chance.randrange(256)
        target.write_bytes(bytes(data))
        assert text(view(replay(open_case(open_paths([str(target)])))))
