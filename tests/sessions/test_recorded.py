"""Real recordings: all exchanges of our APIs are read, loops have their turns, interleaving changes nothing."""

import json
import random
import re
from collections import Counter, defaultdict

import pytest

from inspector.sessions import open_paths
from tests.scenes.bodies import shape

READ = {"openai_chat", "openai_responses", "anthropic_messages", "gemini_generate", "bedrock_converse", "ollama_chat",
        "gemini_interactions", "openai_completions", "ollama_generate",
        "bedrock_invoke", "cohere_chat", "anthropic_complete"}

BEST = "What's the best language to learn?"
AGAIN = "Tell me again: what's the best language to learn?"
ADD = "Can you add 2 and 3? Also 4 and 5? And 6 and 7?"
GREAT = "Great, now can you add 10 and 20? Also 40 and 50? And 60 and 70?"
LOOPS = {
    # Stated by hand from the requests and responses of these entries.
    "two turns of one tool call each": (
        "openai_chat/crmne__ruby_llm.har",
        [(BEST, [(33, "request", 1), (63, "tool_result", 1)]), (AGAIN, [(21, "request", 1), (19, "tool_result", 1)])],
    ),
    "a tool call, its answer, another turn": (
        "openai_chat/crmne__ruby_llm.har",
        [(BEST, [(37, "request", 1), (52, "tool_result", 1)]), (AGAIN, [(10, "request", 1)])],
    ),
    "three calls one after the other": (
        "openai_chat/crmne__ruby_llm.har",
        [("Roll the dice 3 times", [(15, "request", 1), (27, "tool_result", 1), (17, "tool_result", 2)])],
    ),
    "an exchange of the loop is missing": (
        "openai_chat/0xPlaygrounds__rig.har",
        [
            (
                "Run the production-readiness scenario.",
                [(46, "request", 1), (111, "tool_result", 1), (70, "tool_result", 2), (21, "tool_result", 3)],
            )
        ],
    ),
    "call ids that the provider uses again in every response": (
        "openai_responses/pydantic__pydantic-ai.har",
        [
            ("Follow the tool instructions.", [(25, "request", 1), (16, "tool_result", 1), (5, "tool_result", 2)]),
            ("Reply with exactly OK.", [(4, "request", 1)]),
        ],
    ),
    "the answer that ended the first turn is missing": (
        "anthropic_messages/crmne__ruby_llm.har",
        [
            ("What's the weather in Berlin? (52.5200, 13.4050)", [(1, "request", 1)]),
            ("What's the weather in Paris? (48.8575, 2.3514)", [(0, "request", 1), (9, "tool_result", 1)]),
        ],
    ),
    "parallel calls, ids of their own": (
        "gemini_generate/google__adk-go.har",
        [(ADD, [(11, "request", 1)]), (GREAT, [(6, "request", 1), (10, "tool_result", 1)])],
    ),
    "no ids at all, and long texts left out": (
        "ollama_chat/0xPlaygrounds__rig.har",
        [("Compute (4 + 6) * 2. First call", [(5, "request", 1), (8, "tool_result", 1), (4, "tool_result", 2)])],
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_real_loops_have_the_turns_that_they_had(corpus, name):
    file, expected = LOOPS[name]
    loaded = open_paths([str(corpus / "har" / file)])
    wanted = expected[0][1][0][0]
    turns = next(turns for turns in shape(loaded) if any(link[0] == wanted for _, links in turns for link in links))
    assert [links for _, links in turns] == [links for _, links in expected]
    assert all(text.startswith(start) for (text, _), (start, _) in zip(turns, expected, strict=True))


def test_every_exchange_is_read_as_its_api_or_named(corpus):
    paths = sorted((corpus / "har").glob("*/*.har"))
    loaded = open_paths([str(path) for path in paths])
    assert [given.error for given in loaded.inputs if given.error] == []
    found = Counter((exchange.path.split("/")[-2], exchange.api) for exchange in loaded.exchanges)
    assert all(folder == api for folder, api in found)
    entries = {str(path): len(json.loads(path.read_bytes())["log"]["entries"]) for path in paths}
    for given in loaded.inputs:
        assert given.responses + len(given.skipped) == entries[given.path]
        folder = given.path.split("/")[-2]
        assert given.responses == (entries[given.path] if folder in READ else 0)
        assert all("not read yet" in skip.why for skip in given.skipped)
    linked = Counter(link.index for turn in loaded.turns for link in turn.links)
    assert linked == Counter(range(len(loaded.exchanges)))


def test_what_the_recorder_lost_is_not_recorded(corpus):
    rows = [json.loads(line) for line in (corpus / "expected.jsonl").read_text().splitlines()]
    empty = {(row["har"], row["entry"]) for row in rows if "empty_body" in row["kinds"] and row["api"] in READ}
    assert empty
    for file in sorted({file for file, _ in empty}):
        loaded = open_paths([str(corpus / "har" / file)])
        lost = {(file, exchange.entry) for exchange in loaded.exchanges if not exchange.recorded}
        assert lost == {each for each in empty if each[0] == file}


MIXED = [
    "openai_chat/crmne__ruby_llm.har",
    "openai_chat/posit-dev__chatlas.har",
    "openai_responses/pydantic__pydantic-ai.har",
    "anthropic_messages/crmne__ruby_llm.har",
    "gemini_generate/google__adk-go.har",
]


@pytest.mark.parametrize("seed", range(3))
def test_recordings_that_are_interleaved_have_the_same_turns_as_apart(corpus, tmp_path, seed):
    apart = {file: json.loads((corpus / "har" / file).read_bytes())["log"]["entries"] for file in MIXED}
    expected = []
    for file in MIXED:
        loaded = open_paths([str(corpus / "har" / file)])
        expected += _turns(loaded, lambda exchange, file=file: (file, exchange.entry))
    chooser = random.Random(seed)
    queues = {file: list(range(len(entries))) for file, entries in apart.items()}
    order = []
    while any(queues.values()):
        file = chooser.choice([file for file, left in queues.items() if left])
        order.append((file, queues[file].pop(0)))
    path = tmp_path / "mixed.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": [apart[file][number] for file, number in order]}}))
    mixed = open_paths([str(path)])
    assert sorted(_turns(mixed, lambda exchange: order[exchange.entry])) == sorted(expected)


def _turns(loaded, name):
    by_conversation = defaultdict(list)
    for turn in loaded.turns:
        links = [(name(loaded.exchanges[link.index]), link.place.value, link.ordinal) for link in turn.links]
        by_conversation[turn.conversation].append((turn.user_text, links))
    return [sorted(turns) for turns in by_conversation.values()]


def test_no_view_of_the_recordings_shows_a_credential(corpus):
    loaded = open_paths([str(path) for path in sorted((corpus / "har").glob("*/*.har"))])
    key = re.compile(r"(?i)(?:^|[?&])(?:key|api[-_]key|x-amz-signature)=(?!REDACTED)")
    for exchange in loaded.exchanges:
        assert not key.search(exchange.url)
        for name, value in (*exchange.headers, *exchange.request_headers):
            assert name.lower() not in ("authorization", "x-api-key", "cookie", "set-cookie") or value == "REDACTED"


def test_a_folder_of_recordings_is_read_like_its_files(corpus):
    files = sorted(str(path) for path in (corpus / "har" / "ollama_chat").glob("*.har"))
    apart, together = open_paths(files), open_paths([str(corpus / "har" / "ollama_chat")])
    assert [(exchange.path, exchange.entry) for exchange in together.exchanges] == [
        (exchange.path, exchange.entry) for exchange in apart.exchanges
    ]
    assert shape(together) == shape(apart)
