"""A live run as the screens' view model, while it goes on: what was heard, the steps so far, and no verdict yet."""

from __future__ import annotations

from inspector.case import Case, open_case
from inspector.live.driver import Driver
from inspector.live.phase import Phase
from inspector.live.told import NAME, Told, replay_of_turns
from inspector.replay import Replay, TurnRun
from inspector.report.facts import TurnFacts, View, view
from inspector.report.verdict import TurnVerdict
from inspector.sessions import open_paths, redact
from inspector.sessions.values import TurnRecord
from inspector.settings import Settings
from loop_core.address import Server
from loop_core.frozen import replace
from loop_core.mask import Mask
from loop_core.trace import Trace
from loop_core.values import Severity

LIVE = "LIVE"
GLYPH, ASCII = "●", "*"


def seen(driver: Driver) -> View:
    """The view of a run as it stands."""
    live, stepper = driver.live, driver.stepper
    # The belief is held as the policy itself: every step then has the very limits and policy that are in force.
    given = driver.start.settings
    settings = replace(given, limits=stepper.plan.limits, policy=stepper.plan.policy, seam=None, method=None)
    turns = [Told(heard, steps) for heard, steps in zip(live.heard, stepper.turns, strict=True)]
    made = view(replay_of_turns(turns, settings, driver.start.path))
    if not turns[-1].heard:
        made = _with_first(made, turns[-1], settings)
    if live.phase is Phase.OVER:
        return made
    last = made.turns[-1]
    running = TurnVerdict(last.id, last.verdict.rank, LIVE, GLYPH, ASCII, Severity.WARNING, "", None, sure=False)
    return replace(made, turns=(*made.turns[:-1], replace(last, verdict=running)))


def recorded(path: str, server: Server) -> Case:
    """The recording of a run, read again; a secret that the server sent in pieces is whole only there, and is masked.

    Raises:
        LoopError: it cannot be read.
    """
    loaded, mask = open_paths([path]), Mask(server.secrets, redact.body)
    exchanges = tuple(replace(each, response=mask.response(each.response)) for each in loaded.exchanges)
    return open_case(replace(loaded, exchanges=exchanges))


def _with_first(made: View, told: Told, settings: Settings) -> View:
    """The view with a turn in which nothing was heard yet."""
    old, steps = made.replay, tuple(told.steps)
    turn, first = steps[-1].turn, len(old.trace.steps)
    record = TurnRecord(turn.id, NAME, (), turn.request.messages[-1].text if turn.request.messages else "")
    run = TurnRun(record, first, first + len(steps), 1, first + len(steps) - 1, steps)
    replay = Replay(old.case, settings, Trace((*old.trace.steps, *steps)), (*old.turns, run),
                    ends=(*old.ends, run.end))
    none = TurnVerdict(turn.id, 0, "NOT SENT", "∅", "-", Severity.WARNING, "nothing was sent", None, sure=False)
    facts = TurnFacts(run, NAME, (), turn, turn.state, turn.merged(), none)
    return View(replay, made.inputs, made.responses, (*made.turns, facts), made.findings)
