"""Small widgets of lines, which are redrawn only when their content has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Click, Key, Paste
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.strip import Strip
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

from inspector.report.lines import header
from inspector.report.lines.glyphs import ascii_text, hint, key_at
from inspector.report.lines.spans import Line, Span, Tone, clip, join_groups, one_line, spread_ends, width_of, wrap_line
from inspector.report.lines.steps import Outline
from inspector.tui.key_words import key_of
from inspector.tui.messages import ActionWanted
from inspector.tui.paint import RowsInOneStyle, paint_of

# -- A widget of a few lines, computed again only when a value that they show has changed ----------------------------


class Panel(RowsInOneStyle):
    """A widget whose lines `make` computes, one per row."""

    SHOWS: ClassVar[tuple[str, ...]] = ()
    """The reactive attributes that the lines depend on; when one changes, the lines that differ are redrawn."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id, classes=classes)
        self._lines: Sequence[Line] | None = None
        self._laid = Size(0, 0)

    def on_mount(self) -> None:
        """Subscribes to the values that the panel shows."""
        for name in self.SHOWS:
            self.watch(self, name, self.redraw_changes, init=False)

    def make(self, width: int) -> Sequence[Line]:
        """The lines for a width."""
        raise NotImplementedError

    def redraw_changes(self) -> None:
        """Redraws the lines that differ after a change."""
        old, width = self._lines, self.size.width
        # Before the first frame, or after a change of size, there is nothing to compare with.
        if old is None or self._laid != self.size or not self.is_mounted:
            self._lines = None
            self.refresh()
            return
        new = self._lines = self.make(width)
        for y in range(max(len(old), len(new))):
            # Slices, since either side may be shorter.
            if old[y : y + 1] != new[y : y + 1]:
                self.refresh(Region(0, y, width, 1))

    def render_line(self, y: int) -> Strip:
        """One row."""
        width, base = self.size.width, self._base
        if self._lines is None or self._laid != self.size:
            self._lines, self._laid = self.make(width), self.size
        line = self._lines[y] if y < len(self._lines) else ()
        return paint_of(self.app).strip(line, width, base)

    def clicked_key(self, event: Click) -> str | None:
        """The key named at the clicked place."""
        at, rows = event.get_content_offset(self), self._lines or ()
        return key_at(rows[at.y], at.x, paint_of(self.app).measure) if at is not None and at.y < len(rows) else None

    def on_click(self, event: Click) -> None:
        """Presses a named key that was clicked. Textual calls this handler as well as the subclass's own."""
        if (written := self.clicked_key(event)) is not None:
            self.app.simulate_key(key_of(written))


class AutoHeightPanel(Panel):
    """A panel that is as high as its lines need."""

    DEFAULT_CSS = "AutoHeightPanel { height: auto; }"

    def redraw_changes(self) -> None:
        """Redraws the lines, in as many rows as they need."""
        super().redraw_changes()
        if len(self._lines or self.make(self.size.width)) != self.size.height:
            self.styles.merge_rules({})  # else Textual keeps the height of a layout between two requests
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of rows."""
        return len(self.make(width))


class StepPanel(Panel):
    """A panel about the step at the cursor, which the screen sets."""

    outline: reactive[Outline | None] = reactive(None, init=False, repaint=False)
    step: reactive[int] = reactive(0, init=False, repaint=False)


# -- The status line -------------------------------------------------------------------------------------------------
# It is visible at every size of the terminal.


class Status(StepPanel):
    """The status line of the current step."""

    SHOWS = ("outline", "step", "filtered", "coming", "live")
    filtered: reactive[str] = reactive("", init=False, repaint=False)
    """The current filter and the number of steps that pass it; empty without a filter."""

    coming: reactive[str] = reactive("", init=False, repaint=False)
    """The part of the current answer that has arrived."""
    live: reactive[bool] = reactive(False, init=False, repaint=False)
    """Whether this screen recorded the session from a live turn."""

    def make(self, width: int) -> Sequence[Line]:
        """One row."""
        if self.outline is None:
            return ()
        return [header.status(self.outline, self.step, width, self.filtered, self.coming, self.live)]


# -- The first lines of the session screen ---------------------------------------------------------------------------
# The verdict of the turn, then the run, the file and the counts of all verdicts. The stylesheet fixes their height, so
# that nothing below them moves when the text changes.

class VerdictPanel(StepPanel):
    """The verdict on the current turn; a click opens it in full."""

    SHOWS = ("live", "outline", "run", "step")
    run: reactive[str] = reactive("original", init=False, repaint=False)
    paths: reactive[tuple[str, ...]] = reactive((), init=False, repaint=False)
    live: reactive[Line] = reactive((), init=False, repaint=False)
    """The waiting effect of a live turn, which is shown instead of the verdict."""

    def make(self, width: int) -> Sequence[Line]:
        """The verdict in all rows but the last, which names the run and the file."""
        if self.outline is None:
            return ()
        measure, rows, view = paint_of(self.app).measure, self.size.height - 1, self.outline.view
        block = self.outline.block_of(self.step) if self.outline.blocks else None
        if self.live:
            verdict_rows = wrap_line(self.live, width, measure)
            verdict_rows = [*verdict_rows[: rows - 1], join_groups(verdict_rows[rows - 1 :], " ")]
        else:
            verdict_rows = header.verdict_rows(view, view.turns[block.turn] if block else None, width, rows, measure)
        file = self.outline.file_of(block) if block else ""
        source = header.source(self.paths, view, self.run, file)
        counts = () if self.live else header.counts(view)
        if file:
            source = clip(source, width // 2, measure)  # the name of the run has priority
        if file or width_of(source, measure) + width_of(counts, measure) + 2 <= width:
            last = spread_ends(counts, source, width, measure)
        else:
            last = join_groups([counts, source])
        return [*verdict_rows, *([()] * (rows - len(verdict_rows))), last]

    def on_click(self, event: Click) -> None:
        """Opens the verdict in full, unless the click hit a named key."""
        if self.clicked_key(event) is None:
            self.post_message(ActionWanted("screen.verdict", self.screen))


# -- A field with a choice of words: left, right, or a letter, which goes to the next word beginning with it ---------


class Cycle(Panel, can_focus=True):
    """A field that holds one word of a closed list."""

    class Changed(Message):
        """The word changed."""

        def __init__(self, cycle: Cycle) -> None:
            super().__init__()
            self.cycle = cycle

        @property
        def control(self) -> Cycle:
            """The field that changed."""
            return self.cycle

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "turn(1)", "Next word", show=False, tooltip="The next word", id="cycle.next"),
        Binding("left", "turn(-1)", "Previous word", show=False, tooltip="The previous word", id="cycle.previous"),
    ]
    value: reactive[str] = reactive("", init=False, repaint=False)

    def __init__(self, words: Sequence[str], value: str, *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.words = words
        self.set_reactive(Cycle.value, value)

    def watch_value(self) -> None:
        """Redraws the word."""
        self.redraw_changes()
        self.post_message(self.Changed(self))

    def on_focus(self) -> None:
        """Shows the focus marks."""
        self.redraw_changes()

    def on_blur(self) -> None:
        """Removes the focus marks."""
        self.redraw_changes()

    def make(self, width: int) -> Sequence[Line]:
        """The word between its marks."""
        role = Tone.HERE if self.has_focus else Tone.DIM
        return [(Span("< ", role), Span(self.value, Tone.STRONG if self.has_focus else Tone.PLAIN), Span(" >", role))]

    def action_turn(self, by: int) -> None:
        """Goes to the next or previous word."""
        self.value = self.words[(self.words.index(self.value) + by) % len(self.words)]

    def on_click(self, event: Click) -> None:
        """Goes to the previous word if the mark on the left was clicked, else to the next."""
        self.focus()
        self.action_turn(-1 if event.x < 2 else 1)

    def on_key(self, event: Key) -> None:
        """Goes to the next word that begins with the typed letter."""
        if event.character is None or not event.character.isalnum():
            return
        at = self.words.index(self.value)
        ahead = (*self.words[at + 1 :], *self.words[: at + 1])
        found = next((word for word in ahead if word.startswith(event.character.lower())), None)
        if found is not None:
            event.stop()
            self.value = found


# -- One line about the widget beside it ---------------------------------------------------------------------------


class Note(Panel):
    """A line of text with a role."""

    SHOWS: ClassVar[tuple[str, ...]] = ("line",)
    DEFAULT_CSS = "Note { height: 1; }"
    line: reactive[Line] = reactive((), init=False, repaint=False)

    def make(self, width: int) -> Sequence[Line]:
        """The line."""
        return [self.line]


def note(
    text: str, role: Tone = Tone.DIM, *, id: str | None = None, classes: str | None = None,  # noqa: A002 - Textual's
) -> Note:
    """A fixed note."""
    widget = Note(id=id, classes=classes)
    widget.set_reactive(Note.line, (Span(text, role),))
    return widget


class KeyNote(Note, AutoHeightPanel):
    """A note that is wrapped if it does not fit into one row, because a key whose name is cut off cannot be used."""

    SHOWS: ClassVar[tuple[str, ...]] = ("line", "message")
    DEFAULT_CSS = "KeyNote { height: auto; }"
    message: reactive[str] = reactive("", init=False, repaint=False)
    """The message of the last action, shown above the keys until the next action."""

    def make(self, width: int) -> Sequence[Line]:
        """The message and the keys, as rows."""
        both = (hint(one_line(self.message), Tone.WARN, sentence=True), self.line) if self.message else (self.line,)
        return [row for line in both for row in wrap_line(line, width, paint_of(self.app).measure)] if width > 0 else ()


def key_note(text: str, role: Tone = Tone.DIM, *, id: str | None = None) -> Note:  # noqa: A002 - Textual's own name
    """A note that names keys: `enter runs · esc leaves`."""
    widget = KeyNote(id=id)
    widget.set_reactive(Note.line, hint(text, role))
    return widget


# -- A few lines over a list, wrapped to its width -------------------------------------------------------------------


class WrappedLines(AutoHeightPanel):
    """Lines that may change and are wrapped."""

    SHOWS = ("lines",)
    lines: reactive[Sequence[Line]] = reactive((), init=False, repaint=False)

    def make(self, width: int) -> Sequence[Line]:
        """The lines as rows."""
        measure = paint_of(self.app).measure
        return [row for line in self.lines for row in wrap_line(line, width, measure)] if width > 0 else ()


def lines(text: str, id: str) -> WrappedLines:  # noqa: A002 - Textual's own name
    """Fixed lines, wrapped, as high as needed."""
    widget = WrappedLines(id=id)
    widget.set_reactive(WrappedLines.lines, [(Span(text, Tone.DIM),)])
    return widget


# -- A question, a form or a list in a box over the screen -----------------------------------------------------------


def set_size_classes(screen: Screen[Any]) -> None:
    """Sets the classes of the terminal's size. Textual sets them after it styled all parts, and styles them again."""
    for breakpoints, size in zip((screen.HORIZONTAL_BREAKPOINTS, screen.VERTICAL_BREAKPOINTS), screen.app.size,
                                 strict=True):
        screen.add_class(*[name for least, name in breakpoints or () if least <= size][-1:])


class Dialog(ModalScreen[ScreenResultType]):
    """A screen with one box, which is in the middle of the terminal and as high as its content."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical, Dialog > VerticalScroll { max-width: 100%; height: auto; max-height: 100%; padding: 0 1; }
    Dialog > Vertical, Dialog > VerticalScroll { background: $surface; border: round $primary; }
    Dialog .long { height: auto; min-height: 1; max-height: 4; background: $surface; scrollbar-size-vertical: 1; }
    Dialog.-rows-15 .long { max-height: 10; }
    Dialog.-rows-24 .long { max-height: 19; }
    Dialog.-rows-36 .long { max-height: 30; }
    Dialog KeyNote { dock: bottom; }
    Dialog .field, Dialog .field Cycle { height: 1; }
    Dialog .field Input { background: $panel; }
    Dialog .field Input:focus { background: $cursor; }
    Dialog .field Input:focus:ansi { background: ansi_default; text-style: underline; }
    """
    # The height of the part that scrolls, so that the title and the keys are visible too. It is a number of rows,
    # because Textual does not count a share of the terminal (`vh`) for the height of the box.
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [  # noqa: RUF012 - declared so by Textual
        (0, "-rows-0"), (15, "-rows-15"), (24, "-rows-24"), (36, "-rows-36")]
    note: reactive[str] = reactive("", init=False, repaint=False)

    def on_compose(self) -> None:
        """Fits the box to the terminal before its parts are styled."""
        set_size_classes(self)

    def watch_note(self, note: str) -> None:
        """Shows the message of the last action above the keys."""
        for keys in self.query(KeyNote):
            keys.message = note


# -- The parts of a form ---------------------------------------------------------------------------------------------


def field_keys(form: str) -> list[Binding]:
    """The keys that move between the fields of a form; their ids begin with the form's name."""
    return [
        Binding("up,shift+tab", "app.focus_previous", "Previous field", priority=True, tooltip="The previous field",
                id=f"{form}.up"),
        Binding("down,tab", "app.focus_next", "Next field", priority=True, tooltip="The next field", id=f"{form}.down"),
    ]


def field_row(label: str, *fields: Widget, classes: str = "field") -> Horizontal:
    """A row of a form: the label of a field, then the field and what is beside it."""
    return Horizontal(note(label, Tone.STRONG, classes="name"), *fields, classes=classes)


class KeysInOrder(Widget):
    """A field that handles its keys in the order in which they were pressed. Textual looks up a key's binding only when
    the key has bubbled up to the app. If several keys arrive at once, as over a slow connection, a field would take the
    letters after a Backspace before the Backspace."""

    async def on_key(self, event: Key) -> None:
        """Runs the field's own binding of a key at once."""
        bindings = self._bindings.key_to_bindings.get(event.key)
        if bindings and not event.is_printable:
            event.stop()
            event.prevent_default()
            await self.run_action(bindings[0].action)


class LineInput(Input, KeysInOrder):
    """A field of one row."""

    def on_mount(self) -> None:
        """Shows the hint in ASCII if the app runs with `--ascii`."""
        if paint_of(self.app).plain:
            self.placeholder = ascii_text(self.placeholder)

    def on_paste(self, event: Paste) -> None:
        """Joins pasted lines by spaces; Textual takes only the first."""
        event.text = " ".join(event.text.splitlines())


def line_input(value: str, hint: str, id: str | None = None, suggester: Suggester | None = None) -> Input:  # noqa: A002
    """A field of one row; its cursor does not blink, so that an idle screen draws nothing."""
    # With the class that `compact` sets, the field is not styled before it is part of a screen.
    input_field = LineInput(
        value, placeholder=hint, compact=True, id=id, suggester=suggester, classes="-textual-compact")
    input_field.cursor_blink = False
    return input_field
