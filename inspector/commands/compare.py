"""`inspector compare`: two turns side by side, of one recording or of two."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from inspector import commands
from loop_core.errors import CallerError

if TYPE_CHECKING:
    from inspector.report.facts import TurnFacts, View


@click.command(context_settings=commands.CONTEXT)
@click.argument("left", metavar="PATH")
@click.argument("right", metavar="[PATH]", required=False)
@commands.reading
@commands.POLICY
@click.option("--turns", metavar="N,M",
              help="The turns to compare; by default the worst of each path, or the two worst of one path.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (loop-inspector/compare/1).")
def compare(left: str, right: str | None, api: str | None, profile: str | None, policy: str | None, turns: str | None,
            as_json: bool) -> None:
    """Puts two turns side by side: how each ends, stop reason, caps, tokens, calls, steps and text."""
    from inspector.report.lines.spans import one_line, text_of
    from inspector.whatif.turn_pair import TurnPair, TurnSide, pair_values

    settings = commands.configure(policy)[1]
    loaded, one = commands.open_view([left], api, profile, settings)
    other_loaded, other = (loaded, one) if right is None else commands.open_view([right], api, profile, settings)
    numbers = (None, None) if turns is None else _numbers(turns)
    chosen = _turn(one, numbers[0]), _turn(other, numbers[1], beside=numbers[0] is None and right is None)
    sides = [TurnSide(one_line(f"turn {view.number(turn)} · {path.rsplit('/', 1)[-1]}"), view, turn)
             for path, view, turn in zip((left, right or left), (one, other), chosen, strict=True)]
    pair = TurnPair(*sides)
    if as_json:
        commands.write_json(pair_values(pair, (left, right or left)))
    else:
        width = shutil.get_terminal_size((120, 24)).columns
        commands.write("\n".join(text_of(line).rstrip() for line in pair.lines(width)) + "\n")
    sys.exit(max(commands.complain(loaded), 0 if right is None else commands.complain(other_loaded)))


def _numbers(text: str) -> tuple[int, int]:
    first, comma, second = text.partition(",")
    if not (comma and first.strip().isdecimal() and second.strip().isdecimal()):
        raise click.UsageError(f"--turns {text}: expected the number of a turn of each, such as 3,5")
    return int(first), int(second)


def _turn(view: View, number: int | None, beside: bool = False) -> TurnFacts:
    """A turn by its number; without one the worst, or the worst but one where it stands beside that."""
    if number is not None:
        if not 1 <= number <= len(view.turns):
            raise CallerError(f"turn {number}: this recording has the turns 1 to {len(view.turns):,}")
        return view.turns[number - 1]
    ranked = sorted(view.turns, key=lambda turn: turn.verdict.rank)
    if len(ranked) <= beside:
        raise CallerError("there is no turn to compare" if not ranked else "there is only one turn: name a second path")
    return ranked[beside]
