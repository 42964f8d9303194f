"""Prompts for one line at the foot of the screen; a filter and a grid's axes are checked while they are typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.timer import Timer
from textual.widgets import Input, Label

from inspector.report.lines.glyphs import hint
from inspector.report.lines.spans import Tone, count_of, one_line, safe
from inspector.tui.messages import after_pause
from inspector.tui.panels import WrappedLines, key_note, line_input, lines
from loop_core.errors import CallerError


class WordSuggester(Suggester):
    """Completes the last word of a line with the first matching one of some words."""

    def __init__(self, words: Sequence[str], after: Mapping[str, Sequence[str]] | None) -> None:
        """`after`: first word of a line -> the words that complete the rest of the line."""
        super().__init__(case_sensitive=True)
        self._words, self._after = words, after or {}

    async def get_suggestion(self, value: str) -> str | None:
        """The completed line."""
        before, space, begun = value.rpartition(" ")
        words = self._after.get(before, self._words)
        found = next((word for word in words if begun and word.startswith(begun)), None)
        return None if found is None else f"{before}{space}{found}"


class PathSuggester(Suggester):
    """Completes the last name of a path with the first such name in its folder."""

    MOST_NAMES = 10_000
    """The largest number of names of a folder that are looked at, because each key waits for them."""

    def __init__(self, refusal: Callable[[str], str]) -> None:
        """`refusal` returns why a folder may not be read, or ""."""
        super().__init__(use_cache=False, case_sensitive=True)  # a folder may change
        self._refusal = refusal

    async def get_suggestion(self, value: str) -> str | None:
        """The completed path; None if no name begins so, or only one that a terminal could not show."""
        folder, begun = os.path.split(value)
        place = os.path.expanduser(folder) or "."
        if not begun or self._refusal(place):
            return None
        try:
            with os.scandir(place) as entries:
                found = [each.name + ("/" if each.is_dir() else "") for each in islice(entries, self.MOST_NAMES)
                         if each.name.startswith(begun) and each.name.isprintable()]
        except OSError:
            return None
        return os.path.join(folder, min(found)) if found else None


def refusal_of(read: Callable[[str], object]) -> Callable[[str], str]:
    """The check of a prompt's line by the function that reads it: returns the text of its `CallerError`, or ""."""
    def refusal(line: str) -> str:
        try:
            read(line)
        except CallerError as why:
            return one_line(str(why))
        return ""

    return refusal


class Prompt(ModalScreen[str | None]):
    """Asks for one line; returns None if the operator leaves."""

    DEFAULT_CSS = """
    Prompt { align: left bottom; background: $background 0%; }
    #prompt { height: 1; background: $panel; }
    #prompt-word { width: auto; background: $text-primary; color: $background; text-style: bold; }
    #prompt-input { width: 1fr; background: $panel; }
    #prompt-enter { width: 8; padding: 0 0 0 1; background: $panel; }
    #prompt-keys { width: 5; padding: 0 0 0 1; background: $panel; }
    Prompt.-narrow #prompt-enter { display: none; }
    #prompt-refusal { background: $panel; padding: 0 1; }
    """
    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (60, "-wide")]  # noqa: RUF012 - as Textual
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave", tooltip="Leave without doing anything", id="prompt.leave"),
        Binding("tab", "complete", "complete", tooltip="Accept the suggestion", id="prompt.complete", priority=True),
    ]

    def __init__(self, word: str, hint: str, value: str = "", words: Suggester | None = None,
                 refusal: Callable[[str], str] | None = None) -> None:
        """`refusal` returns why a line is invalid, or ""; an invalid line stays open."""
        super().__init__()
        self._word, self._hint, self._value, self._words = word, hint, value, words
        self._refusal = refusal

    def compose(self) -> ComposeResult:
        """Yields the error, the label, the line and its keys."""
        yield WrappedLines(id="prompt-refusal")
        with Horizontal(id="prompt"):
            yield Label(f" {self._word} ", id="prompt-word", markup=False)
            yield line_input(self._value, self._hint, "prompt-input", self._words)
            yield key_note("enter ·", id="prompt-enter")
            yield key_note("esc", id="prompt-keys")

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        if self.accepts(event.value):
            self.dismiss(event.value)

    def accepts(self, text: str) -> bool:
        """Whether the line is valid; an invalid line stays open with the reason."""
        why = self._refusal(text) if self._refusal is not None else ""
        self.query_one("#prompt-refusal", WrappedLines).lines = (
            [(safe(why, Tone.ERROR), *hint(" · enter tries again, esc leaves"))] if why else ())
        return not why

    def action_complete(self) -> None:
        """Accepts the suggestion, as the cursor key at the end of the line does."""
        self.query_one(Input).action_cursor_right()


class NotedPrompt(Prompt):
    """Asks for one line, with a note above it that changes while the line is typed."""

    DEFAULT_CSS = """
    #prompt-note { background: $panel; padding: 0 1; }
    """

    def __init__(self, word: str, hint: str, value: str, note: str) -> None:
        super().__init__(word, hint, value)
        self._note = note

    def compose(self) -> ComposeResult:
        """Yields the note, then the label and the line."""
        yield lines(self._note, "prompt-note")
        yield from super().compose()

    def say(self, text: str, role: Tone) -> None:
        """Shows another note."""
        self.query_one("#prompt-note", WrappedLines).lines = [(safe(text, role),)]


# -- The filter's line at the foot of the screen ---------------------------------------------------------------------
# While the expression is typed, the matching steps are shown, or the error with its column.


WRONG = "column "
"""The beginning of the message about an invalid filter."""


class FilterPrompt(NotedPrompt):
    """Asks for a filter expression; returns None if the operator leaves."""

    def __init__(
        self, value: str, narrow: Callable[[str], str], empty: str = "an empty filter shows all steps"
    ) -> None:
        super().__init__("filter", 'words, or stop:max_tokens held attempt>1 tool:w* & | ! ( )', value, empty)
        self._narrow = narrow
        self._waiting: Timer | None = None

    @on(Input.Changed)
    def _look_soon(self, event: Input.Changed) -> None:
        self._waiting = after_pause(self, self._waiting, lambda: self.accepts(event.value))

    def accepts(self, text: str) -> bool:
        """Shows how many steps match, or refuses an invalid expression."""
        says = self._narrow(text)
        self.tell(says)
        return not says.startswith(WRONG)

    def tell(self, says: str) -> None:
        """Shows how many steps match, or the error."""
        self.say(says, Tone.ERROR if says.startswith(WRONG) else Tone.DIM)


def tell_filter_prompts(app: App[Any], says: str) -> None:
    """Shows in an open filter prompt what a thread has found for its expression."""
    for prompt in app.screen_stack:
        if isinstance(prompt, FilterPrompt) and prompt.is_mounted:
            prompt.tell(says)


# -- The line in which the axes of a grid are typed ------------------------------------------------------------------
# The number of cells is shown beside it, or the error.


class AxesPrompt(NotedPrompt):
    """Asks for axes; returns their valid text, or None if the operator leaves."""

    def __init__(self, value: str) -> None:
        super().__init__("vary", "attempts=0..6 max_tokens=64,128,256", value, "")

    @on(Input.Changed)
    def _check_value(self, event: Input.Changed) -> None:
        self.accepts(event.value)

    def accepts(self, text: str) -> bool:
        """Refuses invalid axes."""
        from inspector.whatif.grid import cell_count, parse_axes

        try:
            axes = parse_axes(text.split())
        except CallerError as why:
            self.say(f"✖ {str(why).removeprefix('--grid ')}", Tone.ERROR)
            return False
        cells = cell_count(axes)
        many = f"{count_of(cells, 'cell')}; a list, 1..6, 64..512/64 in steps, 64..4096*2 doubled"
        self.say(many if axes else "empty: attempts by budgets around the recorded max_tokens", Tone.DIM)
        return True
