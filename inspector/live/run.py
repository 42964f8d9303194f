"""A live turn from its first request to its end state, headless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inspector.case import cancelled
from inspector.live.kept import Kept
from inspector.live.recorder import Recorder
from inspector.live.told import replay_of
from inspector.replay import Replay
from inspector.sessions import redact
from inspector.sessions.native import BY_US
from inspector.settings import Settings
from loop_core.address import Server, speaker
from loop_core.errors import CallerError
from loop_core.loop import Plan, one_turn
from loop_core.mask import SHORTEST
from loop_core.outgoing import ability, body_of
from loop_core.tools import Runs
from loop_core.trace import Step, advance
from loop_core.turn import Cancel
from loop_core.values import Request

if TYPE_CHECKING:
    from loop_core.transport import Line

EXITS: Mapping[str, int] = {
    "completed": 0,
    "retry_limit": 3, "budget_exhausted": 3, "no_progress": 3, "repair_failed": 3, "step_limit": 3, "no_answer": 3,
    "context_window_exceeded": 3, "stuck": 3, "unrecorded": 3,
    "safety_blocked": 4,
    "interrupted": 5,
    "error": 6,
    "cancelled": 130,
}
"""Terminal reason -> exit code; 2 is bad usage, as everywhere."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that is over."""

    replay: Replay
    terminal: str
    failure: str | None = None
    """Why the recording stopped, where it did."""
    notice: str | None = None
    """What the turn has to say of its end; None where all is well."""

    @property
    def exit(self) -> int:
        """The exit code."""
        return EXITS[self.terminal]


class _Observer(Kept, Recorder):
    """Both."""

    def __init__(self, path: str, title: str) -> None:
        Recorder.__init__(self, path, title=title, provenance=f"recorded {BY_US}")
        Kept.__init__(self)


def planned(request: Request, server: Server, settings: Settings) -> tuple[Request, Plan]:
    """The first request as the settings want it, and how the turn is run.

    Raises:
        LoopError: it cannot be sent in this format, or holds the key.
    """
    if settings.max_tokens is not None:
        request = replace(request, max_tokens=settings.max_tokens)
    chosen = speaker(server, request.model)
    refuse_secrets(body_of(request, chosen.profile), server)  # what cannot be sent is told before anything is
    return request, Plan(settings.limits, settings.belief, ability(chosen.profile, server.api), chosen.profile.name)


def run_live(
    request: Request, server: Server, settings: Settings, toolbox: Runs, path: str, line: Line | None = None
) -> Ran:
    """Runs one turn to its end and records it at `path`.

    Raises:
        LoopError: the request cannot be sent in this format, or the recording cannot be begun. Nothing was sent then.
    """
    request, plan = planned(request, server, settings)
    from loop_core.transport import Live

    with ExitStack() as stack:
        source = stack.enter_context(Live(server, None, toolbox, line, redact.body))
        source.observer = observer = _Observer(path, f"{request.model}, live")  # begun when nothing is in the way
        stack.callback(observer.close)
        observer.settings(settings)
        steps: list[Step] = []
        try:
            for step in one_turn("t1", request, source, plan):
                steps.append(step)  # noqa: PERF402  (kept when an interrupt leaves the loop)
        except KeyboardInterrupt:
            if not steps:
                raise
            steps.append(advance(steps[-1], Cancel()))
        ended = steps[-1].turn
        if ended.terminal == "unrecorded":
            observer.note(ended.notice or "")
        if ended.terminal == "cancelled" and observer.heard:
            last = observer.heard[-1]
            answered = took(steps, last.ask.number)
            observer.cancelled(last.ask.number, answered=answered)
            if not answered:
                observer.heard[-1] = replace(last, judged=cancelled(last.judged))
        observer.ended_as(ended.terminal or "")
    notices = [observer.failure] if observer.failure else []
    made = replay_of(observer, steps, settings, path, notices)
    return Ran(made, ended.terminal or "", observer.failure, ended.notice)


def refuse_secrets(body: object, server: Server) -> None:
    """Refuses a request that would carry its own key in its body.

    Raises:
        CallerError: it does.
    """
    import json

    text = json.dumps(body, ensure_ascii=False)
    if any(len(secret) >= SHORTEST and secret in text for secret in server.secrets):
        raise CallerError("the request holds the key that it would be sent with")


def took(steps: Sequence[Step], number: int) -> bool:
    """Whether the machine has taken in the answer to a request."""
    return any(step.response == number for step in steps)
