"""Reads files that are still being written into views; unchanged turns are neither judged nor replayed again."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.config.settings import Settings
from inspector.replay import replay
from inspector.replay.case import open_case
from inspector.report.facts import View, view
from inspector.sessions import without_collector
from inspector.sessions.following import FollowedSession


class FollowedView:
    """Reads growing files, and keeps the last view of them."""

    def __init__(self, paths: Sequence[str], api: str | None, profile: str | None, settings: Settings) -> None:
        self._session = FollowedSession(paths, api=api, profile=profile)
        self._settings = settings
        self._last: View | None = None

    @without_collector
    def read(self) -> View:
        """The view of the files in their current state, equal to that of a complete reading. Raises `LoopError` for an
        API, profile, policy or limit that does not exist."""
        last = self._last
        before = None if last is None else last.replay
        case = open_case(self._session.read(), None if before is None else before.case)
        self._last = view(replay(case, self._settings, before), last)
        return self._last
