"""The runs of one session: the original and its branches, and which of them is looked at. Knows no widget."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.pause import without_collector
from inspector.settings import command, settings_of
from inspector.tui.opening import Opened, Run, run_of
from inspector.whatif.branch import branch


class Runs:
    """A list that only grows, and a place in it."""

    def __init__(self, opened: Opened) -> None:
        self.paths = opened.paths
        self.every: list[Run] = [opened.original]
        self.index = 0

    @property
    def current(self) -> Run:
        """The run that is looked at."""
        return self.every[self.index]

    @without_collector
    def under(self, assignments: Mapping[str, str]) -> tuple[int, bool]:
        """The place of the run with these settings over those of the current one, and whether it had to be made.

        Raises:
            CallerError: a name that does not exist, or a value out of range.
        """
        settings = settings_of(assignments, self.current.view.replay.settings)
        for index, each in enumerate(self.every):
            if each.view.replay.settings == settings:
                return index, False
        made = branch(self.every[0].view, settings)
        self.every.append(run_of(made.name, made.view, made))
        return len(self.every) - 1, True

    def command(self, api: str | None = None, profile: str | None = None) -> str:
        """The command line that makes the current run headless, read as it was read here."""
        return command(self.paths, self.current.view.replay.settings, api, profile)
