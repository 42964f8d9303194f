"""The inputs of a turn, and runs with edited ones. No recorded answer fits an edited input, so a run ends at the first
request that contains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from inspector.config.settings import Settings
from inspector.replay.case import EDITED_INPUT, Case, links_of_loop
from inspector.sessions.recording import Link, TurnPlace, TurnRecord
from loop_core.errors import CallerError
from loop_core.turn.loop import TurnSource
from loop_core.turn.state import Event, NotRecorded, RunTools, Send, ToolResults, Turn
from loop_core.values import Message, Request, Role, TextPart, ToolCall, ToolResultPart


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
