"""The tabs of the session screen, which its keys, the table of turns and the whole verdict open."""

from typing import NamedTuple

from inspector.report.lines.glyphs import DIFF_FORMS, WIRE_FORMS


class SheetTab(NamedTuple):
    """A tab of the session screen."""

    name: str
    key: str
    title: str
    about: str
    """What the help says about the tab."""
    forms: tuple[str, ...] = ()
    """The forms in which the tab shows the same step, the initial one first; empty if there is only one."""


TABS = (
    SheetTab("merged", "1", "Merged", "The merged text of the turn, its segments and seams",
             ("merged", "side by side")),
    SheetTab("response", "2", "Response", "The response at hand, parsed, with the evidence of its stop reason"),
    SheetTab("wire", "3", "Wire", "The bytes of the response: events, raw, hex, and the request",
             WIRE_FORMS),
    SheetTab("calls", "4", "Calls", "The tool calls of the turn, the held ones above all"),
    SheetTab("diff", "5", "Diff", "What the step changed, what the request added to the context, how a run differs",
             DIFF_FORMS),
    SheetTab("events", "6", "Events", "The structured events of the turn"),
    SheetTab("machine", "7", "Machine", "The state machine with the path taken"),
    SheetTab("steps", "8", "Steps", "The step list"),
)
