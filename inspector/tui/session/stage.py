"""What the parts of the session screen share: the session, the run and the step that are looked at, and its notes.

A part owns its state, its keys and the actions that they name. It reads and sets the stage, and knows no other part but
those that it is given.
"""

from __future__ import annotations

from typing import ClassVar

from textual.actions import parse
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from inspector.report.lines.sheet import Sheet
from inspector.report.lines.steps import NO_REMARKS, Outline, Remarks
from inspector.tui.opening import Opened, Run
from inspector.tui.runs import Runs
from inspector.tui.widgets.text_view import NOTHING


class SessionStage(Screen[None]):
    """One session under any number of runs; widgets follow what is reactive here."""

    step: reactive[int] = reactive(0, init=False, repaint=False)
    sheet: reactive[Sheet] = reactive(NOTHING, init=False, repaint=False)
    note: reactive[str] = reactive("", init=False, repaint=False)
    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    listed: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    """The outline of the step list: the whole, or what a filter keeps of it."""
    filtered: reactive[str] = reactive("", init=False, repaint=False)
    """The filter in force and how many steps it keeps; empty without one."""
    step_remarks: reactive[Remarks] = reactive(NO_REMARKS, init=False, repaint=False)
    open_tab: reactive[str] = reactive("merged", init=False, repaint=False)
    """The tab that is marked: `steps` where the list is a tab of its own and open."""
    narrow: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether there is room for one pane only."""

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self.opened, self.runs = opened, Runs(opened)
        self.parts: tuple[Part, ...] = ()
        self.set_reactive(SessionStage.outline, self.run.outline)
        self.set_reactive(SessionStage.listed, self.run.outline)

    @property
    def run(self) -> Run:
        """The run that is shown."""
        return self.runs.current

    def say(self, text: str) -> None:
        """Says something at the foot, until the next key."""
        self.note = text

    def go(self, step: int | None, otherwise: str) -> None:
        """Goes to a step, or says why there is none."""
        if step is None:
            self.note = otherwise
        elif self.run.view.steps:
            self.step = min(max(step, 0), len(self.run.view.steps) - 1)

    def show(self) -> None:
        """Shows the sheet of what is looked at now."""
        raise NotImplementedError

    def adopt(self, *parts: Part) -> None:
        """Takes parts in. Textual looks for the action of a key on the screen: the parts' actions stand there too."""
        self.parts = (*parts, *self.parts)
        for part in parts:
            for binding in part.BINDINGS:
                if isinstance(binding, Binding):
                    name = f"action_{parse(binding.action)[1]}"
                    setattr(self, name, getattr(part, name))


class Part:
    """A piece of the session screen with state, keys and actions of its own."""

    TITLE_OF_KEYS: ClassVar[str]
    """What the help calls its keys."""
    BINDINGS: ClassVar[list[BindingType]]

    def __init__(self, stage: SessionStage) -> None:
        self.stage = stage
