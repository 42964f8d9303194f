"""Every fault in every format, streamed and whole: our own loop ends as the row says, and runs nothing that was cut.

What a run says of such a turn is what is said of its recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loop_core
from inspector.provider import Kind, PlacedFault, Provider, Story, all_stories, serving
from inspector.provider.faults import FAULTS, Argument, Fault, Layer, StopWord, stop_word_of, why_unplayable
from inspector.provider.reading import ARGUMENT_TYPES
from loop_core.formats import FORMATS
from loop_core.judge.arguments import parse_leniently
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import Event, RunTools, ToolResults, Turn
from loop_core.values import Message, Request, Role, Stop, TextPart, ToolResultPart
from loop_core.wire import wire
from loop_core.wire.servers import (
    CHAT,
    COHERE,
    COMPLETE,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    GENERATE,
    INVOKE,
    MESSAGES,
    OLLAMA,
    RESPONSES,
)
from tests.live.test_read_again import play_and_read
from tests.scenes import rows as scene_rows
from tests.scenes.provider import (
    BASES,
    CALLING,
    IMPATIENT,
    MEANT,
    PAGE,
    QUICK,
    STORIES,
    TOOLS,
    WRITE,
    SentOnce,
    each_way,
    in_each_way,
    play,
    reply,
    scenario_name,
    story_of,
    ways_of,
)
from tests.scenes.rows import SHARE, SHARES, each_row, share

INTERACTIONS = "gemini_interactions"
LOSING = {"malformed_frame": (CHAT, MESSAGES, GEMINI, OLLAMA, INTERACTIONS, COHERE, COMPLETIONS, COMPLETE, GENERATE),
          "repeated": (COMPLETIONS, COMPLETE)}
"""Where text is lost and nothing can bring it back: the stream goes on behind the frame that was not read. Or where it
comes twice: a prompt that ends in a text is gone on from byte for byte."""
BLIND = {"wrong_reason": ((GEMINI, True), (GEMINI, False), (OLLAMA, True), (OLLAMA, False))}
"""Where the call does not run and the turn ends all the same: it was not sent, and nothing says so."""

ALL = frozenset((api, stream) for api in FORMATS for stream in (True, False))


def ways(*apis: str, only: tuple[bool, ...] = (True, False)) -> frozenset[tuple[str, bool]]:
    return frozenset((api, stream) for api in apis for stream in only)


PROMPTED = ways(COMPLETIONS, COMPLETE, GENERATE)
"""Formats without calls."""
TOLD = {
    "empty_choices": ways(CHAT, COMPLETIONS),  # nothing else has choices
    "commentary": ways(RESPONSES),  # nothing else has phases
    "fallback": ways(MESSAGES),  # nothing else has blocks of it
    "fresh_ids": ways(CHAT),  # in no other format do later pieces of a call have an id, or come in pieces with one
    "wandering_index": ways(CHAT),
    **dict.fromkeys(("refused_repair", "leaked_call"), ALL - PROMPTED),
    "no_index": ALL - ways(GEMINI, OLLAMA) - PROMPTED,  # whose calls stand in a list, whole
    "one_index": ALL - ways(GEMINI, OLLAMA) - PROMPTED,
    "no_call": ways(CHAT, MESSAGES, CONVERSE, INVOKE, INTERACTIONS, COHERE),  # the others have one word for both ends
    "done_without_reason":  # which mark the end
        ways(OLLAMA, GENERATE) | ways(CHAT, COMPLETIONS, INTERACTIONS, only=(True,)),
    "paused": ways(MESSAGES, INVOKE, GEMINI, INTERACTIONS) | ways(RESPONSES, only=(False,)),
    "context_full": ALL - ways(GEMINI, INTERACTIONS),
    "filtered": ALL - ways(OLLAMA, INTERACTIONS, COHERE, COMPLETE, GENERATE),
    "malformed_call":
        ways(CHAT, RESPONSES, GEMINI, COHERE) | ways(MESSAGES, CONVERSE, INVOKE, INTERACTIONS, only=(True,)),
}
"""Fault -> the formats that have a place for it, streamed or whole, as their providers document them; else all have."""


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_fault_is_refused_where_a_format_has_no_place_for_it(fault: Fault) -> None:
    for api, stream in sorted(ALL):
        told = (api, stream) in TOLD.get(fault.name, ALL) and ("stream" if stream else "whole") not in fault.without
        assert bool(fault.why_impossible(api, stream)) is not told, (api, stream)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving(*STORIES) as running:
        yield running


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_fault_ends_as_its_row_says(fault: Fault, provider: Provider, tmp_path: Path) -> None:
    first, line = len(provider.seen), IMPATIENT if fault.name == "stalled" else QUICK

    def check(api: str, stream: bool) -> None:
        story, where = story_of(fault), f"{api} {'stream' if stream else 'whole'}"
        why = why_unplayable(story, api, stream)
        got = play(provider, api, stream, story.name, cap=fault.cap) if why else play_and_read(
            provider, api, stream, story, tmp_path, cap=fault.cap, line=line)
        came = [seen for seen in provider.seen[first:] if (seen.api, seen.request.stream) == (api, stream)]
        assert all(MEANT[name] == arguments for name, arguments in got.ran), f"{where}: a cut call ran"
        assert len(came) <= 6, where
        if why:
            assert (came[0].status, got.turn.terminal) == (400, "error"), where
            assert why in came[0].error, where
            return
        assert got.turn.terminal == fault.end(api, stream), (where, got.turn.notice)
        befell = [request for request in came if fault.name in request.faults]
        assert befell or fault.when != "first", f"{where}: the fault befell no request"
        if fault.end(api, stream) != "completed":
            assert not got.ran, where
        elif fault.base == "text" and api not in LOSING.get(fault.name, ()):
            assert got.text == BASES["text"][0].text, where
        elif fault.base != "text" and (api, stream) not in BLIND.get(fault.name, ()):
            assert [name for name, _ in got.ran] == [call.name for call in BASES[fault.base][0].calls], where
            assert got.text == "Done.", where

    in_each_way(check, story_of(fault), [*FAULTS].index(fault.name))


@each_row("number", range(1, SHARES + 1))
def test_each_fault_is_played_in_every_share_of_the_sweep(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene_rows, "SHARE", number)
    for row, story in enumerate(STORIES):
        assert not all(why_unplayable(story, *way) for way in ways_of(story, row)), story.name


def test_no_call_runs_from_which_a_frame_was_lost() -> None:
    """A piece inside a string is missing, and the rest parses."""
    stories = {number: Story(f"lost-{number}", "a frame is lost", BASES["call"], TOOLS,
                             (PlacedFault("malformed_frame", number, 0, 0),), seed=number) for number in range(24)}
    played = 0
    with serving(*stories.values()) as provider:
        for row, (api, stream) in enumerate(way for way in each_way if way[0] in CALLING):
            asked = Request(api, model="m", tools=(WRITE, PAGE), max_tokens=400, stream=stream)
            # a number beyond the last frame means the last
            lost = [number for number, story in stories.items() if number < len(reply(story, asked, stream).frames)]
            for number in share(lost, row):
                story = stories[number]
                got = play(provider, api, stream, story.name)
                assert all(MEANT[name] == arguments for name, arguments in got.ran), (api, stream, number)
                played += 1
    assert played > (2 if SHARE else 10) * len(CALLING)


def test_faults_compose() -> None:
    """Torn bytes, empty deltas, a second refusal, a cut, and a lie about it, in one answer."""
    faults = tuple(PlacedFault(name, value, 0, 0) for name, value in (
        ("torn", 3), ("rate_limited", {"times": 1, "retry_after": 0.0, "status": 503}), ("cut", 14),
        ("empty_deltas", True), ("wrong_reason", "tool_calls"),
    ))
    with serving(Story("all", "all at once", BASES["call"], TOOLS, faults)) as provider:
        got = play(provider, CHAT, True, "all")
    assert (got.turn.terminal, got.ran) == ("completed", [("write_file", MEANT["write_file"])])
    assert [(seen.status, seen.kind) for seen in provider.seen] == [
        (503, "first"), (200, "first"), (200, "repair"), (200, "first")]
    assert set(provider.seen[1].faults) == {fault.name for fault in faults}


def test_a_fault_befalls_the_answer_and_the_segment_that_it_names() -> None:
    faults = (
        PlacedFault("cut", 10, segment=0), PlacedFault("cut", 5, segment=1), PlacedFault("cut", 1, answer=1, segment=0),
    )
    with serving(Story("placed", "cuts", BASES["call"], TOOLS, faults)) as provider:
        got = play(provider, "anthropic_messages", True, "placed", continuation_tool_repair_attempts=2)
    assert got.turn.terminal == "completed"
    assert [(seen.answer, seen.segment, seen.tokens) for seen in provider.seen] == [
        (0, 0, 10), (0, 1, 5), (0, 2, 25), (1, 0, 1), (1, 1, 2)]  # the last quotes the anchor first


@pytest.mark.parametrize("fault", [each for each in FAULTS.values() if each.when is Kind.FIRST and each.layer is not
                                   Layer.SENDING], ids=lambda fault: fault.name)
def test_the_stop_word_becomes_what_the_row_says(fault: Fault) -> None:
    """In most formats: some cannot leave the word out, and some have one word for answers that differ."""
    seen: Counter[StopWord] = Counter()
    for api in FORMATS:
        if why_unplayable(story_of(fault), api, True):
            continue
        request = Request(api, (Message(Role.USER, (TextPart("Go on."),)),), "m", (WRITE, PAGE), max_tokens=fault.cap)
        read = loop_core.read(api, reply(story_of(fault), request, True).frames, request=request)
        # A call that is not JSON is a call, as its word says.
        lies = read.stop_reason not in (read.mapped, Stop.MALFORMED_TOOL_CALL) or read.judgement.ending is not None
        seen[StopWord.NONE if not read.response.saw_stop_reason else StopWord.UNKNOWN if read.mapped is Stop.UNKNOWN
             else StopWord.FALSE if lies else StopWord.TRUE] += 1
    assert seen.most_common(1)[0][0] is fault.stop_word, seen


@pytest.mark.parametrize("fault", [each for each in FAULTS.values() if each.layer is Layer.SENDING],
                         ids=lambda fault: fault.name)
def test_no_stop_word_comes_of_an_answer_that_is_broken_off(fault: Fault) -> None:
    assert (fault.stop_word is StopWord.NONE) is (fault.ends == "interrupted")


def test_of_several_faults_the_first_that_changes_the_stop_word_is_told() -> None:
    said = {name: stop_word_of(story) for name, story in all_stories().items()}
    assert said["text"] is said["rate-limited"] is said["cut-call"] is StopWord.TRUE
    assert said["lying-router"] is said["commentary"] is said["empty"] is StopWord.FALSE
    assert said["no-reason"] is said["stalled"] is StopWord.NONE
    assert stop_word_of(Story("both", "x", BASES["text"], TOOLS, (
        PlacedFault("torn", 3), PlacedFault("unknown_reason", True), PlacedFault("reset", 3)))) is StopWord.UNKNOWN


def test_every_kind_of_value_has_a_type_and_every_fault_an_example_of_it() -> None:
    assert set(ARGUMENT_TYPES) == set(Argument)
    for name, fault in FAULTS.items():
        assert name == fault.name
        assert fault.does
        assert set(fault.without) <= {"stream", "whole"}


@pytest.mark.parametrize("api", ["openai_completions", "anthropic_complete", "ollama_generate"])
@pytest.mark.parametrize("name", ["malformed_call", "refused_repair", "leaked_call", "no_call", "no_index", "one_index",
                                  "wandering_index", "fresh_ids", "paused", "fallback", "commentary"])
def test_a_format_of_texts_alone_refuses_what_it_cannot_say(api: str, name: str) -> None:
    assert FAULTS[name].why_impossible(api, True)
    assert FAULTS[name].why_impossible(api, False)


def test_a_format_speaks_of_faults_that_there_are() -> None:
    for api in FORMATS:
        for said in (*wire(api).serving.cannot, *wire(api).serving.ends):
            name, _, mode = said.partition(" ")
            assert name in FAULTS, said
            assert mode in ("", "stream", "whole"), said


class Foreign:
    """Somebody else's runner: runs what the effect lists with whatever can be read of its arguments."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Any]] = []

    def run(self, effect: RunTools, turn: Turn) -> Event:
        self.ran += [(verdict.call.name, parse_leniently(verdict.call.arguments)) for verdict in effect.released]
        return ToolResults(tuple(ToolResultPart(v.call.id, v.call.name, "done") for v in effect.released))


@pytest.fixture(scope="module")
def sent_once() -> Iterator[SentOnce]:
    transport = SentOnce()
    yield transport
    transport.close()


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_foreign_runner_runs_no_cut_call_under_any_policy_and_fault(
    policy: str, provider: Provider, sent_once: SentOnce
) -> None:
    """How an answer comes is not a matter of the policy: the same request is sent under one of them."""
    hazards = [fault for fault in FAULTS.values() if fault.base != "text" and fault.name != "stalled"]
    finished = 0
    for row, fault in enumerate(hazards):
        for api, stream in share([way for way in each_way if way[0] in CALLING  # else there is no call
                                  and not why_unplayable(story_of(fault), *way)], row):
            runner = Foreign()
            play(provider, api, stream, scenario_name(fault.name), cap=fault.cap, policy=POLICIES[policy],
                 runner=runner,
                 client=sent_once.turn())
            where = f"{fault.name} {api} {'stream' if stream else 'whole'}"
            assert all(MEANT.get(name) == arguments for name, arguments in runner.ran), where
            finished += bool(runner.ran)
    assert finished > len(hazards) // (SHARES if SHARE else 1), "whole calls do run"
