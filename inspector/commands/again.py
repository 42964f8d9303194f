"""`inspector replay --live`: says what would be asked, is told to go on, asks, and gives the branch."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from inspector.commands import common
from loop_core.errors import CallerError, LoopError
from loop_core.frozen import replace

if TYPE_CHECKING:
    from inspector.live.again import Wanted
    from inspector.settings import Settings
    from inspector.whatif.store import Store
    from inspector.whatif.tree import Node, Tree
    from loop_core.tools import Toolbox


class Way(NamedTuple):
    """How it is asked, where not as it was recorded."""

    base: str
    model: str | None
    variable: str | None
    tools: str | None
    insecure_http: Sequence[str] = ()


def asked(
    tree: Tree, start: Node, stretches: Sequence[tuple[int | None, Mapping[str, str]]], from_step: int | None,
    turn: int | None, way: Way, store: Store, save: bool, yes: bool,
) -> tuple[Node, int]:
    """The branch that was asked live, and the exit code of its end.

    Raises:
        LoopError: it cannot be asked; nothing was sent then.
    """
    from inspector.live.again import ask, new_name, wanted
    from inspector.live.run import EXITS

    since, settings = _from(tree, start, stretches, from_step, turn)
    look = wanted(start.view.replay, settings, since, os.environ, base=way.base, model=way.model,
                  variable=way.variable, given=_given(way.tools), insecure_http=way.insecure_http)
    _confirmed(look, start, yes)
    name = new_name()
    settings = replace(settings, live=name)
    if save:
        from inspector.whatif.saved import keep
        from inspector.whatif.tree import key_of

        keep(store, start)
        store.branch(key_of(start.key, settings, since), start.key, _record(settings), since)
    try:
        heard, failure = ask(look, name, store.folder)
    except LoopError:
        if save:
            store.forget(key_of(start.key, settings, since))
        raise
    common.say([failure] if failure else [])
    start.view.replay.case.heard[name] = heard
    node, _ = tree.add(start, settings, since)
    ended = node.view.turns[look.turn]
    common.say(filter(None, [ended.ended.notice]))
    end = ended.terminal
    return node, EXITS[end]


def _record(settings: Settings) -> Mapping[str, object]:
    from inspector.settings import record_of

    return record_of(settings)


def _from(
    tree: Tree, start: Node, stretches: Sequence[tuple[int | None, Mapping[str, str]]], from_step: int | None,
    turn: int | None,
) -> tuple[int, Settings]:
    """The step from which on it is asked live, by its index, and the settings that hold then."""
    from inspector.settings import settings_asked

    replay = start.view.replay
    if not replay.turns:
        raise CallerError("nothing was read that could be asked again")
    steps = sorted({since for since, _ in stretches if since is not None})
    if turn is not None and (steps or from_step is not None):
        raise click.UsageError("--turn and a step both say from where on; leave one of them out")
    if len(steps) > 1:
        raise click.UsageError("a live run begins at one step; the settings name more than one")
    if turn is not None and turn > len(replay.turns):
        raise CallerError(f"turn {turn}: this run has the turns 1 to {len(replay.turns):,}")
    if turn is None and not steps and from_step is None and len(replay.turns) > 1:
        raise CallerError(f"this run has {len(replay.turns):,} turns: --turn N or --from-step K says which is asked")
    since = steps[0] if steps else from_step - 1 if from_step is not None else replay.turns[(turn or 1) - 1].first
    if since >= len(replay.trace.steps):
        raise CallerError(f"step {since + 1}: this run has the steps 1 to {len(replay.trace.steps):,}")
    given = {name: value for _, each in stretches for name, value in each.items()}
    return since, settings_asked(given, replay.settings)


def _given(tools: str | None) -> Toolbox | None:
    if tools is None:
        return None
    from inspector.live.tools import tools_of
    from loop_core.tools import Toolbox

    return Toolbox(tools_of(tools)[1])


def _confirmed(look: Wanted, start: Node, yes: bool) -> None:
    """Says where it goes and what it may cost, and waits to be told to go on."""
    from inspector.live.lines import told

    for line in told(look, start.view.number(start.view.turns[look.turn])):
        click.echo(line, err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise CallerError("nothing was sent: standard input is no terminal, and --yes does not say that it may be")
    click.confirm("Ask now?", abort=True, err=True)
