"""The command line: the number of a step, settings to run again under, or anything that a key does, by its name."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from typing import ClassVar

from textual.binding import ActiveBinding, Binding, BindingType

from inspector.tui.session.running import Running
from inspector.tui.session.stepping import Stepping
from loop_core.errors import LoopError


class Commanding(Running, Stepping):
    """What is typed after a colon."""

    TITLE_OF_KEYS = "Stepping"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(":", "command", "go to", id="command",
                tooltip="A step's number, settings such as max_tokens=80, or the name of anything that a key does"),
    ]

    def action_command(self) -> None:
        """Asks for a line, which it completes."""
        from inspector.settings import CHOICES
        from inspector.tui.keys import active
        from inspector.tui.screens.prompt import Prompt, Words
        from loop_core.limits import RANGES, SCOPES
        from loop_core.presets import POLICIES

        # Looked up before the prompt opens: what a list in hand can do is then among them.
        every = {str(found.binding.id): found for _, found in active(self.app.screen)}
        able = {name: found for name, found in every.items() if name != "command"}
        words = {name: choice.words for name, choice in CHOICES.items()}
        values = {**words, "attempts_scope": SCOPES, "policy": tuple(POLICIES), "simulate": ("yes", "no")}
        settings = [f"{name}={value}" for name in (*RANGES, *values) for value in values.get(name) or ("",)]
        hint = f"1 to {len(self.run.view.steps):,}, a setting such as max_tokens=80, or a command such as export"
        self.app.push_screen(
            Prompt(":", hint, words=Words([*sorted(able), *settings])), lambda typed: self._command(typed, able))

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
        last = len(self.run.view.steps)
        if 1 <= number <= last:
            self._go(number - 1, "")
        else:
            self.note = f"{line!r} is no step: 1 to {last:,}"

    def _set(self, line: str) -> None:
        """Runs again under these settings, as `inspector replay --set` takes them."""
        from inspector.settings import parse_stretches

        try:
            stretches = parse_stretches(shlex.split(line.removeprefix("set ")))
        except (LoopError, ValueError) as why:
            self.note = f"{line!r}: {why}"
            return
        if len(stretches) != 1:
            self.note = f"{line!r}: expected settings that all hold from one step on"
            return
        ((since, assignments),) = stretches
        self._branch(assignments, since)

    def _do(self, line: str, able: Mapping[str, ActiveBinding]) -> None:
        """Does what a key would do; the beginning of its name is enough where no other begins so."""
        found = [line] if line in able else [name for name in able if name.startswith(line)]
        if len(found) == 1:
            self.run_worker(self.app.run_action(able[found[0]].binding.action, able[found[0]].node))
            return
        near = found or get_close_matches(line, able, 3, 0.6)
        self.note = f"{line!r} is no command here" + (f"; did you mean {', '.join(near[:4])}?" if near else "")
