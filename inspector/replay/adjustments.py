"""What a replay changes about a recorded turn: limits, raised to what the recording used, and edited inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from inspector.config.settings import REPLAYED, Settings, live_limits
from inspector.replay.case import ASKED_LIVE, EDITED_INPUT, Case, links_of_loop
from inspector.sessions.recording import Exchange, Link, TurnPlace, TurnRecord
from loop_core.errors import CallerError
from loop_core.turn.limits import Limits
from loop_core.turn.loop import TurnSource
from loop_core.turn.state import Event, NotRecorded, RunTools, Send, ToolResults, Turn
from loop_core.values import Message, Request, Role, TextPart, ToolCall, ToolResultPart

# -- Limits raised to the amounts that the recording used, because the recorded loop evidently allowed them ----------
# Otherwise the default of 10 rounds of tools would end each replay of a turn with 60 rounds at the tenth: its text
# would end there, and the end by this limit could be mistaken for the effect of a budget. `max_identical_calls` is
# raised only where budgets are varied: a replay shows where this loop stops an agent that repeats itself.

RecordedLinks = Sequence[tuple[Link, Exchange]]
"""Recorded exchanges of a turn, with their places."""


def _batches(turn: RecordedLinks) -> Iterator[tuple[tuple[str, str | None], ...]]:
    """The calls of each answer that has any, in the form that the machine compares: names and raw text, without ids."""
    for _, exchange in turn:
        if exchange.response.tool_calls:
            yield tuple((call.name, call.arguments) for call in exchange.response.tool_calls)


RECORDED_ROUNDS: Mapping[str, Callable[[RecordedLinks], int]] = {
    "max_tool_steps": lambda turn: sum(bool(exchange.response.tool_calls) for _, exchange in turn),
    "max_identical_calls": lambda turn: max((len(list(same)) for _, same in groupby(_batches(turn))), default=0),
    "max_resumes": lambda turn: sum(link.place is TurnPlace.RESUME for link, _ in turn),
}
"""Name of a limit -> the function that gives the amount that a recorded turn used of the limit."""
_RAISED_IN_REPLAYS = frozenset(("max_tool_steps", "max_resumes"))
_MOST_ROUNDS = 500
"""The largest value to which a replay raises a limit. Each step of a run refers to all messages before it, so the
memory of a run grows with the square of its rounds: 6 MB for 500. Longer turns are replayed in several runs."""


def limits_for(case: Case, record: TurnRecord, settings: Settings) -> Limits:
    """The limits of a turn: the operator's, else those recorded in its session file, else the defaults, raised to the
    rounds of tools and the resumptions that were recorded. Raises `CallerError` if the session file holds a limit that
    does not exist or is out of range."""
    if record.live_run is not None:
        return limits_after(case, record, record.links, settings)
    limits, free = _limits_of_file(case, record, settings)
    if not any(len(record.links) > getattr(limits, name) for name in free):
        return limits  # a short turn, which is not counted
    used = _used(case, record)
    raised = {name: used[name] for name in free if used[name] > getattr(limits, name)}
    return limits.with_values(raised) if raised else limits


def limits_after(case: Case, record: TurnRecord, links: Iterable[Link], settings: Settings) -> Limits:
    """The limits of a live run that continues a turn after these links: the rounds of tools that they used are added to
    the default, because the run begins with them spent."""
    limits, free = _limits_of_file(case, record, settings)
    rounds = RECORDED_ROUNDS["max_tool_steps"](_recorded(case, links)) if "max_tool_steps" in free else 0
    return live_limits(settings, replace(limits, max_tool_steps=limits.max_tool_steps + rounds) if rounds else limits)


def _limits_of_file(case: Case, record: TurnRecord, settings: Settings) -> tuple[Limits, frozenset[str]]:
    """The limits of a turn without its rounds, and the names of those that its rounds may raise."""
    in_file = case.limits_by_path.get(case.opening(record).path, {})
    values = {name: value for name, value in in_file.items() if name not in settings.explicit}
    limits = settings.limits.with_values(values) if values else settings.limits
    free = _RAISED_IN_REPLAYS - settings.explicit - settings.configured - in_file.keys()
    return limits, frozenset(name for name in free if getattr(settings.limits, name) == getattr(REPLAYED, name))


def _used(case: Case, record: TurnRecord) -> Mapping[str, int]:
    # Stored, because the limits are looked up for each step that is shown.
    key = record.links[0].index, len(record.links)
    if key not in case.rounds:
        turn = _recorded(case, record.links)
        case.rounds[key] = {name: min(_MOST_ROUNDS, RECORDED_ROUNDS[name](turn)) for name in _RAISED_IN_REPLAYS}
    return case.rounds[key]


def _recorded(case: Case, links: Iterable[Link]) -> RecordedLinks:
    """The exchanges of these links that were recorded, and not asked for live."""
    return [(link, case.recording.exchanges[link.index]) for link in links if link.why != ASKED_LIVE]


def with_recorded_rounds(case: Case, settings: Settings) -> Settings:
    """The settings with all these limits raised to the most that a recorded turn used, unless operator or file set
    them."""
    free = [name for name in RECORDED_ROUNDS if name not in settings.explicit | settings.configured]
    used = dict.fromkeys(free, 0)
    for record in case.recording.turns:
        turn = [(link, case.recording.exchanges[link.index]) for link in record.links]
        for name in free:
            if name not in case.limits_by_path.get(turn[0][1].path, {}):
                used[name] = max(used[name], RECORDED_ROUNDS[name](turn))
    raised = {name: most for name, most in used.items() if most > getattr(settings.limits, name)}
    return replace(settings, limits=settings.limits.with_values(raised)) if raised else settings


def raised_limits(settings: Settings) -> dict[str, int]:
    """The limits that `with_recorded_rounds` raised, with their values."""
    return {name: value for name in RECORDED_ROUNDS
            if (value := getattr(settings.limits, name)) > getattr(REPLAYED, name)
            and name not in settings.explicit | settings.configured}


# -- The inputs of a turn, and runs with edited ones -----------------------------------------------------------------
# No recorded answer fits an edited input, so a run ends at the first request that contains it.


class TurnInput(NamedTuple):
    """One input of a turn: a message of its first request, or a tool's result in a later one."""

    number: int
    """The number of the input in its turn, from 1."""
    exchange: int
    """The index of the first exchange whose request contains it."""
    message: int
    """The index of the input's message in this request."""
    part: TextPart | ToolResultPart
    place: int
    """The index of the part in that message."""
    what: str
    """The kind of the input in words, such as `user message` or `result of read_file`."""

    @property
    def text(self) -> str:
        """The recorded text."""
        return self.part.text


def turn_inputs(case: Case, record: TurnRecord) -> list[TurnInput]:
    """All inputs of a turn, in order: the texts of its first request, then the results of its calls."""
    found: list[TurnInput] = []
    names: dict[str | None, str] = {}
    answered: Sequence[ToolCall] = ()
    for position, link in enumerate(links_of_loop(case, record)):
        exchange = case.recording.exchanges[link.index]
        # The requests of a transcript have only the rows since the last answer, and not its calls.
        names |= {call.id: call.name for call in answered}
        request, answered = exchange.request, exchange.response.tool_calls
        if request is None or (position and link.place is not TurnPlace.TOOL_RESULT):
            continue
        names |= {call.id: call.name for message in request.messages for call in message.tool_calls}
        # A later request repeats the whole history: only what follows its last assistant message is new.
        for at in range(_fresh(request.messages) if position else 0, len(request.messages)):
            message = request.messages[at]
            for place, part in enumerate(message.parts):
                if isinstance(part, ToolResultPart) or (isinstance(part, TextPart) and not position):
                    found.append(TurnInput(len(found) + 1, link.index, at, part, place, _what(message, part, names)))
    return found


def _fresh(messages: Sequence[Message]) -> int:
    """The index of the first message after the last answer."""
    return next((at + 1 for at in reversed(range(len(messages))) if messages[at].role is Role.ASSISTANT), 0)


def _what(message: Message, part: TextPart | ToolResultPart, names: Mapping[str | None, str]) -> str:
    if isinstance(part, ToolResultPart):
        name = part.name or (names.get(part.call_id) if part.call_id is not None else None)
        return f"result of {name or 'a tool'}"
    return f"{message.role.value} message"


def input_of(case: Case, record: TurnRecord, name: str) -> TurnInput:
    """The input with this name: its number, `user` for the user's last message, `result` for the only tool result.
    Raises `CallerError` if the turn has no such input."""
    inputs = turn_inputs(case, record)
    fits = {"user": [each for each in inputs if each.what == "user message"][-1:],
            "result": [each for each in inputs if isinstance(each.part, ToolResultPart)],
            }.get(name, [each for each in inputs if name == str(each.number)])
    if len(fits) == 1:
        return fits[0]
    raise CallerError(f"{'more than one' if fits else 'no'} input {name!r} in turn {record.id.removeprefix('t')}")


def pending_edits(case: Case, record: TurnRecord, settings: Settings) -> list[tuple[TurnInput, str]]:
    """The inputs of a turn that the settings replace, with their new texts, unless a live run has already used them."""
    wanted = {edit.input: edit.text for edit in settings.edits if edit.id == record.id}
    return [(each, wanted[each.number]) for each in (turn_inputs(case, record) if wanted else ())
            if each.text != wanted.get(each.number, each.text)]


def edited_request(request: Request, edits: Sequence[tuple[TurnInput, str]]) -> Request:
    """The request with the new texts, as far as it has the recorded texts at the recorded places."""
    messages = list(request.messages)
    for turn_input, text in edits:
        if turn_input.message < len(messages) and (
                messages[turn_input.message].parts[turn_input.place : turn_input.place + 1] == (turn_input.part,)):
            # The value is compared too: an agent that rewrote its history has another part at this place.
            part, parts = turn_input.part, list(messages[turn_input.message].parts)
            parts[turn_input.place] = (
                TextPart(text) if isinstance(part, TextPart) else part._replace(text=text, json=None))
            messages[turn_input.message] = messages[turn_input.message]._replace(parts=tuple(parts))
    return replace(request, messages=tuple(messages))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EditedSource:
    """A source with edited inputs, which answers no request that contains an edited text."""

    source: TurnSource
    results: Mapping[int, Mapping[int, str]]
    """Index of a round of tools -> index of a result in the round -> the new text of the result."""
    rounds: int
    """The number of rounds of tools before the first edited request."""

    def respond(self, send: Send, turn: Turn) -> Event:
        """The answer, if the request contains no edited text."""
        return NotRecorded(EDITED_INPUT) if turn.spend.tool_steps >= self.rounds else self.source.respond(send, turn)

    def run_tools(self, effect: RunTools, turn: Turn) -> Event:
        """The results, the edited ones with their new texts."""
        event, texts = self.source.run_tools(effect, turn), self.results.get(turn.spend.tool_steps)
        if texts is None or not isinstance(event, ToolResults):
            return event
        return event._replace(results=tuple(
            part._replace(text=texts[at], json=None) if at in texts else part for at, part in enumerate(event.results)))

    def follow_up(self, turn: Turn) -> tuple[Message, ...]:
        """The messages that the wrapped source adds."""
        return self.source.follow_up(turn)


def edited_source(
    case: Case, links: Sequence[Link], edits: Sequence[tuple[TurnInput, str]], source: TurnSource
) -> TurnSource:
    """The source of a run over these links, with the edits applied."""
    results: dict[int, dict[int, str]] = {}
    rounds = [0] if any(turn_input.exchange == links[0].index for turn_input, _ in edits) else []
    for turn_input, text in edits:
        number = round_of(links, turn_input.exchange)
        if number is not None:
            results.setdefault(number, {})[_among_results(case, turn_input)] = text
            rounds.append(number + 1)
    return EditedSource(source, results, min(rounds)) if rounds else source


def round_of(links: Sequence[Link], exchange: int) -> int | None:
    """The tool round, from 0, whose results the request of an exchange carries, within the run over these links."""
    # The links begin with the run's own request, which carries no results.
    rounds = [link.index for link in links[1:] if link.place is TurnPlace.TOOL_RESULT]
    return rounds.index(exchange) if exchange in rounds else None


def _among_results(case: Case, change: TurnInput) -> int:
    """The place of a result among all results of its request."""
    request = case.recording.exchanges[change.exchange].request
    messages = request.messages if request is not None else ()
    before = [part for message in messages[_fresh(messages) : change.message] for part in message.results]
    own = messages[change.message].parts[: change.place]
    return len(before) + sum(isinstance(part, ToolResultPart) for part in own)
