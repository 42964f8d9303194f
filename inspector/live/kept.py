"""What a live run leaves in memory: answers, when they were asked for, what was waited for and what the tools said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from inspector.sessions.native import AGAIN, sent_again
from inspector.sessions.values import ToolAnswer
from loop_core.exchange import Ask, Heard, Observer
from loop_core.values import ToolResultPart


class Kept(Observer):
    """Keeps what a live source tells, and passes it on to the observer beside it in a class of both."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.notices: list[str] = []
        self.started: dict[int, str] = {}
        """When each request left, by its number; as a recording writes it."""
        self.answers: list[ToolAnswer] = []

    def asked(self, ask: Ask) -> None:
        """Notes the time."""
        super().asked(ask)
        self.started[ask.number] = datetime.now(UTC).isoformat(timespec="microseconds")

    def ended(self, heard: Heard) -> None:
        """Keeps the answer."""
        super().ended(heard)
        self.heard.append(heard)

    def waits(self, number: int, seconds: float) -> None:
        """Notes why a request is sent again, and when."""
        super().waits(number, seconds)
        last = next(heard for heard in reversed(self.heard) if heard.ask.number == number)
        self.notices.append(sent_again(number, last.status, last.problem, f"{AGAIN} {seconds:g} s"))

    def ran(self, number: int, results: Sequence[ToolResultPart]) -> None:
        """Keeps the results, and when they were there."""
        super().ran(number, results)
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        self.answers += [ToolAnswer(number, part, at) for part in results]
