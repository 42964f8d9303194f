"""The keys of the session screen. The key bar shows them in this order, as many as fit."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from inspector.tui.sheets import TABS

SESSION_KEYS: list[BindingType] = [
    Binding("space", "step(1)", "step", tooltip="The next step", id="step.forward"),
    Binding("backspace", "step(-1)", "back", tooltip="The step before", id="step.back"),
    Binding("}", "event(1)", "event", tooltip="The next cut, held call, limit or end in trouble", id="event.next"),
    Binding("e", "limits", "limits", tooltip="Edit the limits and run again", id="limits"),
    Binding("/", "search", "search", tooltip="Search in this view", id="search"),
    Binding("b", "run(1)", "runs", tooltip="The next run: the original and its branches", id="run.next"),
    Binding("v", "mode", "view", id="mode",
            tooltip="Another form of this view: events, raw, hex, request; step or run"),
    Binding("y", "copy", "copy", tooltip="Copy what this view shows", id="copy"),
    Binding("{", "event(-1)", "Event before", show=False, id="event.previous",
            tooltip="The cut, held call, limit or end in trouble before"),
    Binding("]", "turn(1)", "turn", tooltip="The first step of the next turn", id="turn.next"),
    Binding("[", "turn(-1)", "Turn before", show=False, id="turn.previous",
            tooltip="The first step of this turn, or of the one before"),
    Binding(":", "jump", "go to", tooltip="Go to a step by its number", id="jump"),
    Binding("n", "again(1)", "match", tooltip="The next match of the search", id="search.next"),
    Binding("N", "again(-1)", "Match before", show=False, tooltip="The match before", id="search.previous"),
    Binding("B", "run(-1)", "Run before", show=False, tooltip="The run before", id="run.previous"),
    Binding("r", "rerun", "Run again", show=False, tooltip="Run again now with the limits of this run", id="rerun"),
    Binding("Y", "copy_command", "command", id="copy.command",
            tooltip="Copy the command line that makes this run headless"),
    Binding("w", "wrap", "wrap", tooltip="Wrap long lines, or scroll sideways", id="wrap"),
    Binding("z", "zoom", "zoom", tooltip="This pane alone, or all of them", id="zoom"),
    *(Binding(tab.key, f"tab('{tab.name}')", tab.title, show=False, tooltip=tab.about, id=f"tab.{tab.name}")
      for tab in TABS),
    Binding("tab", "other_pane", "Other pane", show=False, tooltip="To the other pane", id="pane"),
]
