"""Which sheet a tab shows at a step. Pure choices: the making is in `report.lines`; the last few sheets are kept.

The modules that make sheets are imported when a tab is first opened: the first frame shows one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from inspector.report.lines.merged import Merged, merged
from inspector.report.lines.outline import Block, Outline
from inspector.report.lines.sheet import Listed, Sheet
from inspector.report.lines.spans import Role, Span
from inspector.whatif.branch import Branch
from loop_core.frozen import frozen


class Tab(NamedTuple):
    """One tab: its name, the key that opens it, and what stands on it."""

    name: str
    key: str
    title: str
    about: str


TABS = (
    Tab("merged", "1", "Merged", "The merged text of the turn, its segments and seams"),
    Tab("response", "2", "Response", "The response at hand, parsed, with the evidence of its stop reason"),
    Tab("wire", "3", "Wire", "The bytes of the response: events, raw, hex, and the request"),
    Tab("calls", "4", "Calls", "The tool calls of the turn, the held ones above all"),
    Tab("diff", "5", "Diff", "What the step changed; for a run with other limits, how it differs"),
    Tab("events", "6", "Events", "The structured events of the turn"),
    Tab("machine", "7", "Machine", "The state machine with the path taken"),
    Tab("steps", "8", "Steps", "The step list"),
)
WIRE_MODES = ("events", "raw", "hex", "request")
KEPT = 16
"""Sheets that are remembered; coming back to one costs nothing."""


@frozen
class Asked:
    """What is looked at."""

    tab: str
    outline: Outline
    step: int
    wire_mode: str = "events"
    against: str = "step"
    """Diff: against the step before, or against the original run."""
    branch: Branch | None = None


Key = tuple[object, ...]


class Sheets:
    """Makes sheets and keeps the last ones."""

    def __init__(self) -> None:
        self._kept: dict[Key, Sheet] = {}

    def at(self, asked: Asked) -> Sheet:
        """The sheet for what is looked at."""
        if not asked.outline.view.steps:
            return Listed([(Span("nothing was read", Role.DIM),)])
        make, key_of = _MAKERS[asked.tab]
        key = (asked.tab, asked.outline, *key_of(asked))
        sheet = self._kept.pop(key, None) or make(asked)
        self._kept[key] = sheet
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return _placed(sheet, asked)


def _placed(sheet: Sheet, asked: Asked) -> Sheet:
    return sheet.at(_response(asked)) if isinstance(sheet, Merged) else sheet


def _block(asked: Asked) -> Block:
    return asked.outline.block_of(asked.step)


def _response(asked: Asked) -> int | None:
    return asked.outline.view.steps[asked.step].response


def _before(asked: Asked) -> int | None:
    """The step, where no response has come yet."""
    return asked.step if _response(asked) is None else None


def _merged(asked: Asked) -> Sheet:
    return merged(asked.outline.view, _block(asked), _response(asked))


def _of_response(asked: Asked) -> Sheet:
    from inspector.report.lines import response

    index, view = _response(asked), asked.outline.view
    return response.awaited(view.steps[asked.step]) if index is None else response.response(view, view.responses[index])


def _wire(asked: Asked) -> Sheet:
    from inspector.report.lines import response, wire

    index, view = _response(asked), asked.outline.view
    if index is None:
        first = view.turns[_block(asked).turn].responses
        coming = next((i for i in first if view.responses[i].step >= asked.step), None)
        if coming is None or asked.wire_mode != "request":
            return response.awaited(view.steps[asked.step])
        index = coming
    return wire.wire(view.responses[index], asked.wire_mode)


def _calls(asked: Asked) -> Sheet:
    from inspector.report.lines import calls

    return calls.calls(asked.outline.view, _block(asked), _response(asked))


def _diff(asked: Asked) -> Sheet:
    from inspector.report.lines import diff
    from inspector.whatif import lines as whatif

    if asked.against == "run":
        if asked.branch is None:
            return Listed([(Span("this is the original run; e runs it with other limits", Role.DIM),)])
        return whatif.against_original(asked.branch)
    return diff.diff(asked.outline.view, asked.step)


def _events(asked: Asked) -> Sheet:
    from inspector.report.lines import events

    return events.events(asked.outline.view, _block(asked), asked.step)


def _machine(asked: Asked) -> Sheet:
    from inspector.report.lines import machine

    block = _block(asked)
    return Listed(machine.sheet_lines(asked.outline.view.steps, block.first, asked.step, block.end))


_MAKERS: Mapping[str, tuple[Callable[[Asked], Sheet], Callable[[Asked], Key]]] = {
    "merged": (_merged, lambda asked: (_block(asked),)),
    "response": (_of_response, lambda asked: (_response(asked), _before(asked))),
    "wire": (_wire, lambda asked: (_response(asked), _before(asked), asked.wire_mode)),
    "calls": (_calls, lambda asked: (_block(asked), _response(asked))),
    "diff": (_diff, lambda asked: (asked.against, asked.step if asked.against == "step" else None)),
    "events": (_events, lambda asked: (_block(asked), asked.step)),
    "machine": (_machine, lambda asked: (asked.step,)),
}
"""Tab -> how its sheet is made, and what it depends on beside the run."""
