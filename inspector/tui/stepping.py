"""Stepping: forwards and backwards by step, event and turn, to a breakpoint, or to what is typed after a colon.

Held keys run faster. The line after the colon takes the number of a step, settings to run again under, or the name of
anything that a key does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from time import monotonic
from typing import ClassVar

from textual.binding import ActiveBinding, Binding, BindingType

from inspector.tui.remarks import RemarkBook
from inspector.tui.stage import SessionPart, SessionStage
from loop_core.errors import LoopError

REPEAT = 0.09
"""Seconds within which a key that comes again is held down."""
LATER = 8
"""Repeats after which a held key takes twice as many steps at a time."""
SHARE = 50
"""A held key never takes more than this part of the session at a time."""


class Stepping(SessionPart):
    """Where the cursor goes."""

    TITLE_OF_KEYS = "Stepping"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "step(1)", "step", tooltip="The next step; held down, faster and faster", id="step.forward"),
        Binding("backspace", "step(-1)", "back", tooltip="The step before", id="step.back"),
        Binding("}", "event(1)", "event", tooltip="The next cut, held call, limit or end in trouble", id="event.next"),
        Binding("{", "event(-1)", "Event before", show=False, id="event.previous",
                tooltip="The cut, held call, limit or end in trouble before"),
        Binding("c", "proceed(1)", "continue", id="continue", tooltip="Run to the next breakpoint, else to the end"),
        Binding("C", "proceed(-1)", "Run back", show=False, id="continue.back",
                tooltip="Run back to the breakpoint before, else to the first step"),
        Binding("]", "turn(1)", "turn", tooltip="The first step of the next turn", id="turn.next"),
        Binding("[", "turn(-1)", "Turn before", show=False, id="turn.previous",
                tooltip="The first step of this turn, or of the one before"),
        Binding(":", "command", "go to", id="command",
                tooltip="A step's number, settings such as max_tokens=80, or the name of anything that a key does"),
    ]

    def __init__(self, stage: SessionStage, remarks: RemarkBook,
                 branch: Callable[[dict[str, str], int | None], None]) -> None:
        """`branch` runs again under other settings, from a step on."""
        super().__init__(stage)
        self.remarks, self._branch = remarks, branch
        self._struck, self._streak = (0, 0.0), 0
        """The last move and when it came; how often it has come in a row."""

    def action_step(self, by: int) -> None:
        """Steps forward or back."""
        target = self.moved(by)
        edge = f"this is the {'last' if by > 0 else 'first'} step"
        edge += " that the filter keeps" if self.stage.filtered else ""
        self.stage.go(None if target == self.stage.step else target, edge)

    def moved(self, by: int) -> int:
        """The step that a move leads to, among those that the list shows; a held key moves further."""
        now, (before, at) = monotonic(), self._struck
        self._streak = self._streak + 1 if before == by and now - at < REPEAT else 0
        self._struck = (by, now)
        most = max(1, len(self.stage.run.view.steps) // SHARE)
        listed = self.stage.run.outline if self.stage.listed is None else self.stage.listed
        return listed.moved(self.stage.step, by * min(2 ** (self._streak // LATER), most))

    def action_event(self, by: int) -> None:
        """Goes to the next or previous event worth stopping at."""
        where = "after" if by > 0 else "before"
        found = self.stage.run.outline.interesting(self.stage.step, by)
        self.stage.go(found, f"nothing out of the ordinary {where} this step")

    def action_proceed(self, by: int) -> None:
        """Runs to the next or previous breakpoint; where there is none, to the end."""
        from inspector.tui.breakpoints import next_stop

        found = next_stop(self.remarks.breakpoints, self.stage.run.view, self.stage.step, by, self.remarks.marks)
        if found is not None:
            self.stage.step, self.stage.note = found[0], f"breakpoint: {found[1]}"
            return
        self.stage.step = len(self.stage.run.view.steps) - 1 if by > 0 else 0
        where = "the last step" if by > 0 else "the first step"
        enabled = any(each.enabled for each in self.remarks.breakpoints)
        self.stage.note = f"no breakpoint on the way: {where}" + ("" if enabled else "; b sets breakpoints")

    def action_turn(self, by: int) -> None:
        """Goes to another turn."""
        edge = "this is the last turn" if by > 0 else "this is the first turn"
        self.stage.go(self.stage.run.outline.turn_start(self.stage.step, by), edge)

    # -- the command line ----------------------------------------------------------------------------------------

    def action_command(self) -> None:
        """Asks for a line, which it completes."""
        from inspector.config.settings import CHOICES
        from inspector.tui.keys import active_keys
        from inspector.tui.questions import Prompt, WordSuggester
        from loop_core.turn.limits import RANGES, SCOPES
        from loop_core.turn.presets import POLICIES

        # Looked up before the prompt opens, so that the keys of the focused list are among them.
        every = {str(found.binding.id): found for _, found in active_keys(self.stage.app.screen)}
        able = {name: found for name, found in every.items() if name != "command"}
        words = {name: choice.words for name, choice in CHOICES.items()}
        values = {**words, "attempts_scope": SCOPES, "policy": tuple(POLICIES), "simulate": ("yes", "no")}
        settings = [f"{name}={value}" for name in (*RANGES, *values) for value in values.get(name) or ("",)]
        hint = f"1 to {len(self.stage.run.view.steps):,}, a setting such as max_tokens=80, or a command such as export"
        prompt = Prompt(":", hint, words=WordSuggester([*sorted(able), *settings]))
        self.stage.app.push_screen(prompt, lambda typed: self._command(typed, able))

    def _command(self, typed: str | None, able: Mapping[str, ActiveBinding]) -> None:
        line = (typed or "").strip()
        plain = line.replace(",", "").replace("_", "")
        if not line:
            return
        if plain.isdecimal():
            self._jump(line, int(plain))
        elif "=" in line:
            self._set(line)
        else:
            self._do(line, able)

    def _jump(self, line: str, number: int) -> None:
        last = len(self.stage.run.view.steps)
        if 1 <= number <= last:
            self.stage.go(number - 1, "")
        else:
            self.stage.note = f"{line!r} is no step: 1 to {last:,}"

    def _set(self, line: str) -> None:
        """Runs again under these settings, as `inspector replay --set` takes them."""
        from inspector.config.settings import parse_stretches

        try:
            stretches = parse_stretches(shlex.split(line.removeprefix("set ")))
        except (LoopError, ValueError) as why:
            self.stage.note = f"{line!r}: {why}"
            return
        if len(stretches) != 1:
            self.stage.note = f"{line!r}: expected settings that all hold from one step on"
            return
        ((since, assignments),) = stretches
        self._branch(assignments, since)

    def _do(self, line: str, able: Mapping[str, ActiveBinding]) -> None:
        """Does what a key would do; the beginning of its name is enough where no other begins so."""
        found = [line] if line in able else [name for name in able if name.startswith(line)]
        if len(found) == 1:
            self.stage.run_worker(self.stage.app.run_action(able[found[0]].binding.action, able[found[0]].node))
            return
        near = found or get_close_matches(line, able, 3, 0.6)
        self.stage.note = f"{line!r} is no command here" + (f"; did you mean {', '.join(near[:4])}?" if near else "")
