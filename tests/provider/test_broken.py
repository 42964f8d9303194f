"""The network cut at every frame boundary and inside every frame, and a turn cancelled at every frame boundary.

In every format: the turn is interrupted or cancelled, nothing hangs, and no call runs of which not all came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from inspector.provider import PlacedFault, Provider, Story, serving
from loop_core.client.address import Server
from loop_core.client.exchange import Observer
from loop_core.client.outgoing import ability
from loop_core.client.transport import AsyncLive
from loop_core.formats import FORMATS
from loop_core.turn.loop import Plan, arun
from loop_core.turn.state import Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import Message, Request, Role, Stop, TextPart
from loop_core.wire import decode, wire
from loop_core.wire.profiles import PROFILES
from tests.scenes.provider import BASES, CALLING, MEANT, QUICK, TOOLS, at_once, play, reply
from tests.scenes.rows import share

MOST = 40
"""More frames than the answer has in any format; a number beyond the last means the last."""
STORIES = tuple(
    Story(f"{how}-{number}{base}", "the network is cut", BASES[base or "call"], TOOLS, (PlacedFault(how, value, 0, 0),),
          seed=3)
    for number in range(MOST) for base in ("", "text")
    for how, value in (("dropped", number), ("reset", number), ("stalled", {"frame": number, "seconds": 60}))
)
PATIENT = replace(QUICK, timeouts=replace(QUICK.timeouts, silence=30))
NAMED = {story.name: story for story in STORIES}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving(*STORIES) as running:
        yield running


def request_of(api: str, model: str) -> Request:
    said = Message(Role.USER, (TextPart("Go on."),))
    tools = () if wire(api).no_tools else tuple(each.tool for each in TOOLS)
    return Request(api, (said,), model, tools, max_tokens=400, stream=True)


def story_name(api: str, how: str, number: int) -> str:
    """A format without calls is cut in a text."""
    return f"{how}-{number}{'text' if wire(api).no_tools else ''}"


def frames(api: str, model: str) -> tuple[bytes, ...]:
    return reply(NAMED[model], request_of(api, model), True).frames


@pytest.mark.parametrize("api", FORMATS)
def test_the_network_is_cut_at_every_frame(api: str, provider: Provider) -> None:
    """Dropped or reset, in turn; both ways at the first frames, and at the last ones, where the reason is."""
    count = len(frames(api, story_name(api, "reset", 0)))
    assert count < MOST

    def check(case: tuple[str, int]) -> None:
        how, number = case
        name = story_name(api, how, number)
        sent = b"".join(frames(api, name)[:number])
        came = decode(api, sent)
        finished = came.stop_reason.normalized in (Stop.TOOL_CALL, Stop.END_TURN)
        got = play(provider, api, True, name)
        where = f"{api}: {how} at frame {number} of {count}"
        if finished:  # the call and its reason had come; only what follows them was lost
            assert got.ran == ([] if wire(api).no_tools else [("write_file", MEANT["write_file"])]), where
            assert got.turn.terminal == "completed", where
        else:
            assert got.ran == [], where
            assert got.turn.terminal == "interrupted", where
            times = 1 if came.text else 1 + QUICK.retries.most  # what nobody has seen is asked for again
            assert [(seen.api, seen.scenario) for seen in provider.seen].count((api, name)) == times, where

    at_once(check, share([(how, number) for number in range(count) for how in (
        ("dropped", "reset") if min(number, count - 1 - number) < 3 else ("dropped", "reset")[number % 2 :][:1])], api))


class Frames(Observer):
    """Says when so many bytes of an answer have come."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.come, self.there = wanted, 0, asyncio.Event()

    def on_head(self, number: int, status: int, headers: object) -> None:
        if self.wanted == 0:
            self.there.set()

    def on_data(self, number: int, data: bytes, ms: float) -> None:
        self.come += len(data)
        if self.come >= self.wanted:
            self.there.set()


async def cancel_turn(provider: Provider, api: str, number: int) -> tuple[Turn, list[object]]:
    """A turn that is cancelled when so many frames have come, and the server waits before the next."""
    name, ran = story_name(api, "stalled", number), list[object]()
    told = Frames(sum(map(len, frames(api, name)[:number])))
    box = Toolbox({"write_file": lambda arguments: ran.append(arguments) or "done"})
    plan = Plan(ability=ability(PROFILES["generic"], api))
    async with AsyncLive(Server(api, provider.bases[api]), told, box, PATIENT) as source:
        running = asyncio.create_task(arun("t", request_of(api, name), source, plan))
        await asyncio.wait_for(told.there.wait(), 3)
        source.cancel()
        trace = await asyncio.wait_for(running, 20)
    return trace.steps[-1].turn, ran


@pytest.mark.parametrize("api", ["openai_chat", *(api for api in FORMATS if api not in CALLING)])
async def test_a_turn_is_cancelled_at_every_frame(api: str, provider: Provider) -> None:
    """For the other formats see `live/test_faults`."""
    count = len(frames(api, story_name(api, "stalled", 0)))
    for number in share(range(count), api):
        seen = len(provider.seen)
        turn, ran = await cancel_turn(provider, api, number)
        where = f"{api}: after {number} of {count} frames"
        assert (turn.terminal, ran) == ("cancelled", []), where
        assert len(provider.seen) == seen + 1, where
