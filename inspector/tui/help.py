"""The help: every key that works on the screen below, derived from its bindings, grouped by where it works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from inspector.report.lines.spans import EMPTY, Line, Listed, Role, Span, text_of
from inspector.tui.keys import active_keys, declared_bindings
from inspector.tui.panels import line_input, note
from inspector.tui.text_view import TextView

KEYS, TERMS = 16, 20
"""Columns of the keys, and of the terms of a filter."""
GLYPHS: Sequence[tuple[str, str]] = (
    ("│ ▶ ┆", "past, here, still ahead"),
    ("✓ ✂ ▣ ⊘ ╳", "a clean end, cut, held, filtered or rejected, failed or interrupted"),
    ("◇ ◌ → ▷", "evaluated, a limit is asked, a request is sent, calls run"),
    ("▰▱", "spent of a limit"),
)


class HelpScreen(ModalScreen[None]):
    """All keys; what is typed narrows them."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    #help { width: 80; max-width: 100%; height: 90%; padding: 0 2; background: $surface; border: round $primary; }
    #help Input { background: $panel; margin: 0 0 1 0; }
    #help TextView { height: 1fr; background: $surface; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1", "dismiss", "close", tooltip="Close the help", id="help.leave",
                priority=True),
        *(Binding(key, f"scroll('{key}')", show=False, tooltip="Scroll", id=f"help.{key}", priority=True)
          for key in ("up", "down", "pageup", "pagedown")),
    ]

    def __init__(self, below: Screen[object], section: str = "") -> None:
        super().__init__()
        self._sections = sections(below)
        self._start = section

    def compose(self) -> ComposeResult:
        """A title, a line to type in, and the list."""
        with Vertical(id="help"):
            yield note("Keys  (type to narrow, ↑ ↓ scroll, esc closes)", Role.TITLE)
            yield line_input(self._start, "step, filter, held")
            text = TextView()
            text.set_reactive(TextView.sheet, Listed(matching_sections(self._sections, self._start)))
            yield text

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self.query_one(TextView).sheet = Listed(matching_sections(self._sections, event.value))

    def action_scroll(self, key: str) -> None:
        """Scrolls the list."""
        text = self.query_one(TextView)
        {"up": lambda: text.action_lines(-1), "down": lambda: text.action_lines(1),
         "pageup": lambda: text.action_page(-1), "pagedown": lambda: text.action_page(1)}[key]()


Sections = Mapping[str, Sequence[Line]]


def matching_sections(found: Sections, words: str) -> list[Line]:
    """The rows that hold all words, under their titles; a title that holds them keeps all of its rows."""
    wanted = words.lower().split()
    made: list[Line] = []
    for title, rows in found.items():
        kept = [row for row in rows if all(word in f"{title} {text_of(row)}".lower() for word in wanted)]
        if kept:
            made += [*([EMPTY] if made else []), (Span(title, Role.TITLE),), *kept]
    return made or [(Span("nothing is called so", Role.DIM),)]


def sections(screen: Screen[object]) -> Sections:
    """The keys of a screen: of its parts, of the focused pane, of the whole app; then the filter language and marks."""
    found: dict[str, list[Line]] = {}
    for keys, each in sorted(active_keys(screen), key=lambda pair: _order(screen, pair[1])):
        row = _row(keys, each.binding.tooltip or each.binding.description)
        found.setdefault(_title(screen, each), []).append(row)
    found["Filter language"] = [(Span(f"{term:<{TERMS}}", Role.KEY), Span(about)) for term, about in filter_terms()]
    found["Marks"] = [_row(glyphs, words) for glyphs, words in GLYPHS]
    return found


def _owners(screen: Screen[object]) -> list[type]:
    """Who declares the keys of a screen: its parts, in their order, then its class and those that it derives from."""
    return [*(type(part) for part in getattr(screen, "parts", ())), *reversed(type(screen).__mro__)]


def _owner(screen: Screen[object], found: ActiveBinding) -> type | None:
    return next((kind for kind in _owners(screen)
                 if any(each.id == found.binding.id for each in declared_bindings(kind))), None)


def _title(screen: Screen[object], found: ActiveBinding) -> str:
    if found.node is screen.app:
        return "Everywhere"
    if found.node is not screen:
        return "This pane"
    return getattr(_owner(screen, found), "TITLE_OF_KEYS", "This screen")


def _order(screen: Screen[object], found: ActiveBinding) -> int:
    """What the screen declares first, in that order; then the pane, then the app."""
    if found.node is screen.app:
        return 1000
    owner = _owner(screen, found) if found.node is screen else None
    return 999 if owner is None else _owners(screen).index(owner)


def filter_terms() -> list[tuple[str, str]]:
    """What a filter can ask, a row each."""
    from inspector.report import filter_terms

    return [
        ("a b · a & b · a | b · !a · (a)", "both, both, either, not, grouped"),
        *((f"{name}:WORD", row.about) for name, row in filter_terms.WORDS.items()),
        *((name, row.about) for name, row in filter_terms.FLAGS.items()),
        *((f"{name}>N", row.about) for name, row in filter_terms.NUMBERS.items()),
        *((f"~{name} REGEX", f"a regular expression finds it in {row.about}")
          for name, row in filter_terms.PATTERNS.items()),
    ]


def _row(keys: str, words: str) -> Line:
    return (Span(f"{keys:<{KEYS}}", Role.KEY), Span(words))
