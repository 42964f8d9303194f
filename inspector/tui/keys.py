"""What the bindings say, for people: one reading of them for the key bar, the help and the palette."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.binding import ActiveBinding, Binding
from textual.screen import Screen

from loop_core.errors import CallerError

NAMES: Mapping[str, str] = {
    "space": "space", "backspace": "⌫", "enter": "enter", "escape": "esc", "pagedown": "PgDn", "pageup": "PgUp",
    "home": "Home", "end": "End", "down": "↓", "up": "↑", "left": "←", "right": "→",
    "colon": ":", "slash": "/", "question_mark": "?", "left_square_bracket": "[", "right_square_bracket": "]",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "f1": "F1", "plus": "+", "minus": "-", "equals_sign": "=",
    "comma": ",", "full_stop": ".", "less_than_sign": "<", "greater_than_sign": ">",
}

BAR = ("live.do", "live.run", "live.pause", "live.cancel", "live.edit", "live.body", "live.again", "live.say",
       "step.forward", "step.back", "event.next", "limits", "advice", "policies.open", "policies.next",
       "providers.open", "providers.next", "providers.more", "providers.each", "providers.policy", "filter", "search",
       "run.next", "tune",
       "mode", "continue", "breakpoints", "copy", "export", "turn.next", "command", "search.next", "copy.command",
       "wrap", "zoom")
"""The order in which the key bar offers bindings; others follow in the order of their screen."""
LAST = ("help", "back")
"""Bindings that the key bar keeps whatever the width, at its end."""


def name_of(key: str) -> str:
    """A key as it is written on a keyboard."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+')}"
    return NAMES.get(key, key)


def active(screen: Screen[object]) -> list[tuple[str, ActiveBinding]]:
    """The bindings that work on a screen now, each action once with all its keys."""
    grouped: dict[tuple[str, str], tuple[list[str], ActiveBinding]] = {}
    for key, found in screen.active_bindings.items():
        if found.enabled and found.binding.id:
            keys, _ = grouped.setdefault((found.binding.id, found.binding.action), ([], found))
            keys.append(name_of(key))
    return [(" ".join(keys), found) for keys, found in grouped.values()]


def shown_keys(screen: Screen[object]) -> Iterator[tuple[str, ActiveBinding]]:
    """The bindings that the key bar offers, in their order, help and leaving last."""
    found = [(keys.split(" ")[0], each) for keys, each in active(screen) if each.binding.show]
    yield from sorted(found, key=lambda pair: _place(pair[1].binding.id or ""))


def _place(name: str) -> int:
    if name in LAST:
        return len(BAR) + 1 + LAST.index(name)
    return BAR.index(name) if name in BAR else len(BAR)


def check(keys: Mapping[str, str]) -> None:
    """Looks whether a configuration names bindings that exist, and keys for them.

    Raises:
        CallerError: it does not; the text says which.
    """
    from difflib import get_close_matches

    known = every_id()
    for name, given in keys.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise CallerError(f"keys.{name}: there is no such binding" + (f"; did you mean {near[0]}?" if near else ""))
        if not all(part.strip() for part in given.split(",")):
            raise CallerError(f"keys.{name}: {given!r} names no key; expected keys such as space,right")


def every_id() -> Mapping[str, Binding]:
    """Each binding of the app, its screens and its lists, by its id: what a configuration may remap."""
    from inspector.tui.app import LoopInspector
    from inspector.tui.live.begin import LiveForm
    from inspector.tui.live.body import BodyEditor
    from inspector.tui.live.budget import BudgetForm
    from inspector.tui.live.calls import CallsForm, ResultEditor
    from inspector.tui.live.operating import Operating
    from inspector.tui.screens.ask import AskLive
    from inspector.tui.screens.limits import LimitsForm
    from inspector.tui.screens.picker import PickerScreen
    from inspector.tui.screens.policies import Cells
    from inspector.tui.screens.providers import Dialects, ProvidersScreen
    from inspector.tui.screens.tune import TuneScreen
    from inspector.tui.session.again import Again
    from inspector.tui.session.commanding import Commanding
    from inspector.tui.session.comparing import Comparing
    from inspector.tui.session.exporting import Exporting
    from inspector.tui.session.remarking import Remarking
    from inspector.tui.session.running import Running
    from inspector.tui.session.stepping import Stepping
    from inspector.tui.session.tracing import Tracing
    from inspector.tui.session.tuning import Tuning
    from inspector.tui.session.viewing import Viewing
    from inspector.tui.widgets.heatmap import HeatMap
    from inspector.tui.widgets.rows import RowList
    from inspector.tui.widgets.text_view import TextView

    owners = (
        LoopInspector, Stepping, Commanding, Remarking, Running, Tuning, Comparing, Viewing, Tracing, Exporting,
        RowList, TextView, Operating, LiveForm, BodyEditor, BudgetForm, CallsForm, ResultEditor,
        PickerScreen, LimitsForm, AskLive, Again, Cells, Dialects, ProvidersScreen, TuneScreen, HeatMap)
    return {each.id: each for owner in owners for each in owner.BINDINGS if isinstance(each, Binding) and each.id}
