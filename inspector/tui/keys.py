"""The keys of a screen in the key bar, the help and the command palette, all read from the screen's bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar

from textual import on
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual.app import App, ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.containers import Vertical
from textual.events import Click
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Input

from inspector.config.settings import suggestion
from inspector.report.lines.glyphs import hint
from inspector.report.lines.spans import (
    EMPTY,
    Line,
    LineSheet,
    Measure,
    Span,
    Tone,
    one_line,
    text_of,
    width_of,
    wrap_line,
)
from inspector.tui.key_words import EVERYWHERE, NARROW_SIGNS, ORDER, SIGNS, SYNONYMS, filter_terms, name_of, purpose_of
from inspector.tui.messages import ActionWanted, LockingScreen, goes_back
from inspector.tui.paint import paint_of
from inspector.tui.panels import AutoHeightPanel, Dialog, key_note, line_input
from inspector.tui.text_view import TextView
from loop_core.errors import CallerError

BAR = ("live.do", "live.run", "live.pause", "live.cancel", "live.edit", "live.body", "live.again", "live.say",
       "policies.open", "policies.next", "policies.each",
       "providers.open", "providers.play", "providers.next", "providers.more", "providers.each", "providers.policy",
       "step.forward", "attention", "limits", "advice", "tune", "policies", "export",
       "turns.open", "turns.filter", "turns.search", "turns.attention", "turns.policies", "picker.live",
       "turns.tune", "turns.sort", "turns.export", "turns.group", "providers", "event.next", "step.back",
       "filter", "search", "run.next", "mode", "continue", "breakpoints", "copy", "turn.next", "command",
       "search.next", "copy.command", "wrap", "zoom")
"""The ids of bindings in the order in which the key bar offers them; the others follow in the order of their screen."""
LAST = ("help", "back")
"""The ids of the bindings at the end of the key bar, at any width."""


def active_keys(screen: Screen[object]) -> list[tuple[str, ActiveBinding]]:
    """The active bindings of a screen, each action once with all its keys."""
    # One row per command: several keys may have the same id and action.
    grouped: dict[tuple[str, str], tuple[list[str], ActiveBinding]] = {}
    for key, found in screen.active_bindings.items():
        if found.enabled and found.binding.id:
            keys, _ = grouped.setdefault((found.binding.id, found.binding.action), ([], found))
            keys.append(name_of(key))
    return [(", ".join(keys), found) for keys, found in grouped.values()]


NARROW = 100
"""The width in cells below which a terminal is narrow for the key bar."""


def shown_keys(screen: Screen[object]) -> Iterator[tuple[str, ActiveBinding]]:
    """The bindings of the key bar in order; help and leaving come last."""
    signs = NARROW_SIGNS if screen.size.width < NARROW else SIGNS
    found = [(signs.get(key := keys.split(", ")[0], key), each)
             for keys, each in active_keys(screen) if each.binding.show]
    yield from sorted(found, key=lambda pair: _place(pair[1].binding.id or ""))


def _place(name: str) -> int:
    if name in LAST:
        return len(BAR) + 1 + LAST.index(name)
    return BAR.index(name) if name in BAR else len(BAR)


def check_keys(keys: Mapping[str, str]) -> None:
    """Checks that a configuration names existing bindings and keys. Raises `CallerError` if a binding or key does not
    exist; the text names it."""
    if not keys:
        return
    ids = every_id()
    for name, key_names in keys.items():
        if name not in ids:
            raise CallerError(f"keys.{name}: there is no such binding{suggestion(name, sorted(ids))}")
        if not all(part.strip() for part in key_names.split(",")):
            raise CallerError(f"keys.{name}: {key_names!r} names no key; expected keys such as space,right")
        for part in key_names.split(","):
            _check_key(name, part.strip())


KEY_NAMES = frozenset({*(each.value for each in Keys), *KEY_NAME_REPLACEMENTS.values(), *FUNCTIONAL_KEYS.values()})
MODIFIERS = frozenset({"ctrl", "shift", "alt", "meta", "super", "hyper"})


def _check_key(binding: str, key: str) -> None:
    *modifiers, plain = key.split("+") if len(key) > 1 else [key]
    known = len(plain) == 1 or plain in KEY_NAMES or key_to_character(plain) is not None
    if not known or not MODIFIERS.issuperset(modifiers):
        raise CallerError(f"keys.{binding}: there is no key {key!r}{suggestion(key, sorted(KEY_NAMES))}")


@cache
def every_id() -> Mapping[str, Binding]:
    """All bindings of the app, its screens and its widgets, by id: those that a configuration may remap."""
    return {each.id: each for owner in owners() for each in declared_bindings(owner) if each.id}


def declared_bindings(owner: type) -> list[Binding]:
    """The bindings that a class itself declares."""
    return [each for each in vars(owner).get("BINDINGS", ()) if isinstance(each, Binding)]


def key_in_force(app: App[object], declaring: Iterable[type], name: str) -> str:
    """The name of the key that a binding of these classes has in the present configuration; empty if there is none."""
    own = next((each.key for owner in declaring for each in declared_bindings(owner) if each.id == name), "")
    return name_of(app._keymap.get(name, own).split(",")[0])


def owners() -> list[type]:
    """All classes of the app that declare bindings, found in its modules; new ones need no registration."""
    from importlib import import_module
    from pkgutil import walk_packages

    import inspector.tui

    modules = [import_module(each.name) for each in walk_packages(inspector.tui.__path__, "inspector.tui.")]
    found = [kind for module in modules for kind in vars(module).values()
             if isinstance(kind, type) and kind.__module__ == module.__name__ and "BINDINGS" in vars(kind)]
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


# -- The key bar -----------------------------------------------------------------------------------------------------

NOTE_ROWS = 4
"""The largest number of rows for a long note."""


class KeyBar(AutoHeightPanel):
    """A row of keys, after a note of several rows if there is one."""

    SHOWS = ("note", "idle")
    note: reactive[str] = reactive("", init=False, repaint=False)
    """The message of the last action; it is shown until the next action."""
    idle: reactive[frozenset[str]] = reactive(frozenset(), init=False, repaint=False)
    """The ids of bindings that have no effect here except a note; they are not shown."""

    def on_mount(self) -> None:
        """Redraws when the active bindings change, or when a question opens over the screen or closes."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.redraw_changes())
        self.watch(self.screen, "stack_updates", self.redraw_changes, init=False)

    def make(self, width: int) -> Sequence[Line]:
        """The note, then as many keys as fit; no keys while a question is open, because the question takes them."""
        if self.screen is not self.app.screen:
            return self._note_rows(width)
        rows, keys = self._rows_and_keys(width)
        return [*rows[:-1], (*rows[-1], *(span for _, spans in keys for span in spans))]

    def _note_rows(self, width: int) -> list[Line]:
        """The rows of the note; an empty row if there is none."""
        if not self.note:
            return [EMPTY]
        line = hint(one_line(self.note), Tone.WARN, sentence=True)
        fits = width > 2  # before the first layout it is 0
        wrapped = wrap_line(line, width - 2, paint_of(self.app).measure)[:NOTE_ROWS] if fits else [line]
        rows: list[Line] = [(Span(" "), *row) for row in wrapped]
        rows[-1] = (*rows[-1], Span("  "))
        return rows

    def _rows_and_keys(self, width: int) -> tuple[list[Line], list[tuple[ActiveBinding, Line]]]:
        """The rows of the note, and the keys after the last row, or below it if help and leaving need more room."""
        rows, last, measure = self._note_rows(width), not goes_back(self.app), paint_of(self.app).measure
        every = [
            (found, _entry(key, "quit" if last and found.binding.id == "back" else found.binding.description))
            for key, found in shown_keys(self.screen) if found.binding.id not in self.idle
        ]
        keys = _fitting(every, room := width - width_of(rows[-1], measure), measure)
        if self.note and sum(width_of(spans, measure) for _, spans in keys) > room:
            return [*rows, EMPTY], _fitting(every, width, measure)
        return rows, keys

    def on_click(self, event: Click) -> None:
        """Runs the action of the clicked key."""
        rows, keys = self._rows_and_keys(self.size.width)
        position = width_of(rows[-1], measure := paint_of(self.app).measure)
        if event.y != len(rows) - 1 or event.x < position:
            return
        for found, spans in keys:
            position += width_of(spans, measure)
            if event.x < position:
                self.post_message(ActionWanted(found.binding.action, found.node))
                return


def _fitting(
    every: Sequence[tuple[ActiveBinding, Line]], room: int, measure: Measure,
) -> list[tuple[ActiveBinding, Line]]:
    """The keys that fit without being cut; room for help and leaving is reserved."""
    fitting, widths = list(every), [width_of(spans, measure) for _, spans in every]
    # The last two are help and leaving; the key before them is the least important of the others.
    while len(fitting) > 2 and sum(widths) > room:
        del fitting[-3], widths[-3]
    return fitting


def _entry(key: str, words: str) -> Line:
    return (Span(f" {key} ", Tone.KEY), Span(f"{words} ", Tone.DIM))


def _moves(found: ActiveBinding) -> bool:
    """Whether a key only moves the cursor of a list or scrolls a text."""
    return (found.binding.id or "").partition(".")[0] in ("list", "text") and found.binding.id != "list.open"


# -- The command palette ---------------------------------------------------------------------------------------------
# The palette is derived from the bindings, so that it cannot disagree with them.


class KeyCommands(Provider):
    """The palette commands: one for each active binding."""

    async def discover(self) -> Hits:
        """All commands, before anything is typed; those that only move a cursor, which nobody searches here, come last.
        """
        for title, about, found in sorted(self._every(), key=lambda each: _moves(each[2])):
            yield DiscoveryHit(title, partial(run_binding, self.app, found), text=title, help=about)

    async def search(self, query: str) -> Hits:
        """The commands that match."""
        matcher = self.matcher(query)
        for title, about, found in self._every():
            # The synonyms are matched too, so that a word from another program finds the command.
            score = max(matcher.match(title), matcher.match(about))
            if score > 0:
                act = partial(run_binding, self.app, found)
                yield Hit(score, matcher.highlight(title), act, text=title, help=about)

    def _every(self) -> Iterator[tuple[str, str, ActiveBinding]]:
        """The commands with their descriptions and synonyms, grouped as in the help."""
        for purpose, keys, found in _by_purpose(self.screen):
            name = found.binding.id or ""
            if name != "palette":
                words = " · ".join(filter(None, (purpose, found.binding.description.lower(), SYNONYMS.get(name, ""))))
                yield f"{found.binding.tooltip} ({keys})", words, found


async def run_binding(app: App[object], active: ActiveBinding) -> None:
    """Runs the action of a binding."""
    await app.run_action(active.binding.action, active.node)


# -- The help: every key that works on the screen below, grouped by purpose ------------------------------------------


KEY_WIDTH = 18
"""The width in cells of the first column of the help, which has the keys or the terms of a filter."""
GLYPHS: Sequence[tuple[str, str]] = (
    ("│ ▶ ┆", "past, here, still ahead"),
    ("✓ ✂ ▣ ⊘ ╳", "a clean end, cut, held, filtered or rejected, failed or interrupted"),
    ("◇ ◌ → ▷", "evaluated, a limit is asked, a request is sent, calls run"),
    ("▰▱", "spent of a limit"),
    ("c2", "this turn belongs to another conversation than the turn above: the second"),
)


class HelpScreen(Dialog[None]):
    """All keys, filtered by typing."""

    DEFAULT_CSS = """
    #help { width: 80; height: 90%; padding: 0 2; }
    #help KeyNote { dock: top; }
    #help Input { background: $panel; margin: 0 0 1 0; }
    #help TextView { height: 1fr; background: $surface; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1", "dismiss", "close", tooltip="Close the help", id="help.leave",
                priority=True),
        *(Binding(key, f"scroll('{key}')", show=False, tooltip="Scroll", id=f"help.{key}", priority=True)
          for key in ("up", "down", "pageup", "pagedown")),
    ]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._below, self._sections = below, sections(below)

    def compose(self) -> ComposeResult:
        """A title, a line to type in, and the list."""
        with Vertical(id="help"):
            yield key_note("Keys  (type to narrow, ↑ ↓ scroll, esc closes)", Tone.TITLE)
            yield line_input("", "step, filter, held")
            text = TextView()
            text.set_reactive(TextView.sheet, LineSheet(matching_sections(self._sections, "")))
            yield text

    def on_mount(self) -> None:
        """Imports the other screens, whose keys are found too, before the first letter."""
        self.run_worker(owners, thread=True)

    @on(Input.Changed)
    def _filter_sections(self, event: Input.Changed) -> None:
        if event.value == "?":  # the line takes the character before the binding: the key that opens the help closes it
            self.dismiss()
            return
        found = {**self._sections, **(keys_elsewhere(self._below) if event.value.strip() else {})}
        self.query_one(TextView).sheet = LineSheet(matching_sections(found, event.value))

    def action_scroll(self, key: str) -> None:
        """Scrolls the list."""
        text = self.query_one(TextView)
        {"up": lambda: text.action_lines(-1), "down": lambda: text.action_lines(1),
         "pageup": lambda: text.action_page(-1), "pagedown": lambda: text.action_page(1)}[key]()


Sections = Mapping[str, Sequence[Line]]


def matching_sections(sections: Sections, words: str) -> list[Line]:
    """The rows that contain all words, under their headings; a heading that contains them keeps all its rows."""
    wanted = words.lower().split()
    matching_lines: list[Line] = []
    for title, rows in sections.items():
        matching_rows = [row for row in rows if all(word in f"{title} {text_of(row)}".lower() for word in wanted)]
        if matching_rows:
            matching_lines += [*([EMPTY] if matching_lines else []), (Span(title, Tone.TITLE),), *matching_rows]
    return matching_lines or [(Span("no key or term matches", Tone.DIM),)]


def sections(screen: Screen[object]) -> Sections:
    """The keys of a screen by purpose, those of the app, then the filter language and the glyphs."""
    found: dict[str, list[Line]] = {}
    row = partial(_row, min(KEY_WIDTH, max(10, screen.size.width // 3)))
    for purpose, keys, each in _by_purpose(screen):
        found.setdefault(purpose, []).append(row(keys, each.binding.tooltip or each.binding.description))
    found["Filter language"] = [row(term, about) for term, about in filter_terms()]
    found["Marks"] = [row(glyphs, words) for glyphs, words in GLYPHS]
    return found


def keys_elsewhere(screen: Screen[object]) -> Sections:
    """The keys that only other screens have, by the way to each screen."""
    here = {found.binding.id for _, found in active_keys(screen)}
    row = partial(_row, min(KEY_WIDTH, max(10, screen.size.width // 3)))
    places = ((WAYS_TO_SCREENS.get(kind.__name__, ""), kind) for kind in owners())
    return {f"Only {place}": [
        row(", ".join(map(name_of, screen.app._keymap.get(each.id or "", each.key).split(","))), each.tooltip)
        for each in declared_bindings(kind) if each.tooltip and each.id not in here] for place, kind in places if place}


def _by_purpose(screen: Screen[object]) -> list[tuple[str, str, ActiveBinding]]:
    """The keys of a screen with their purposes, in the order of the headings; the keys of the app come last."""
    every = [(EVERYWHERE if found.node is screen.app else purpose_of(found.binding.id or ""), keys, found)
             for keys, found in active_keys(screen)]
    return sorted(every, key=lambda row: ORDER.index(row[0]))


def _row(width: int, keys: str, words: str) -> Line:
    return (Span(f"{keys:<{width - 1}} ", Tone.KEY), Span(words))


# -- Why a key does nothing ------------------------------------------------------------------------------------------


WAYS_TO_SCREENS: Mapping[str, str] = {
    "SessionScreen": "in an open session (enter in the table of turns)", "TurnsScreen": "in the table of turns (q)",
    "TextView": "in the text of an open session (tab)",
    "ProvidersScreen": "in the table of providers (P)", "PolicyTable": "in the table of policies (p)",
    "TuneScreen": "in the map of limits (u)", "LiveScreen": "in a live turn (L)",
    "SideBySide": "beside another run (R, then d)", "LoopInspector": "one screen back (esc)",
}
"""Class name of a screen, or of its table -> how the operator reaches it."""


def why_unused(app: App[Any], key: str) -> str:
    """Why a key does nothing on the screen: it is not active now, or works elsewhere; empty if it works nowhere."""
    here = next((each for each in app.screen._bindings.key_to_bindings.get(key, []) if each.tooltip), None)
    if here is not None:
        lock = app.screen.controls if isinstance(app.screen, LockingScreen) else None
        later = lock.why_locked(here.action.partition("(")[0]) if lock is not None else ""
        return f"{name_of(key)} {later or 'has no use now'}: {here.tooltip} · ? lists the keys"
    by_name = {kind.__name__: kind for kind in owners()}
    below = [kind.__name__ for each in app.screen_stack[-2:-1] for kind in type(each).__mro__]
    # The nearest first: a derived screen, such as that of a live turn, has its own meaning for a key.
    near = {name: at for at, name in enumerate(below)}
    for name, place in sorted(WAYS_TO_SCREENS.items(), key=lambda way: near.get(way[0], len(below))):
        if name not in by_name or name == type(app.screen).__name__:
            continue
        where = "one screen back (esc)" if name in below else place
        for each in declared_bindings(by_name[name]):
            # A binding may name a key by its character, an event has Textual's name: `]`, `right_square_bracket`.
            if name_of(key) in map(name_of, app._keymap.get(each.id or "", each.key).split(",")):
                return f"{name_of(key)} works {where}: {each.tooltip}"
    return ""
