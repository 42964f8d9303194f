"""The editors for a text of several rows: a message or tool result for the model, and a request's body as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ScreenResultType
from textual.widgets import TextArea

from inspector.report.lines.spans import Tone, inert, one_line, safe
from inspector.tui.panels import Dialog, KeysInOrder, WrappedLines, key_note, lines, note
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.live.driver import Driver


class TextField(TextArea, KeysInOrder):
    """A text area of several rows that handles keys in the order in which they were pressed."""


def text_field(text: str, id: str, **more: Any) -> TextArea:  # noqa: A002
    """A text field whose cursor does not blink, so that an idle screen draws nothing."""
    editor = TextField(text, soft_wrap=True, id=id, **more)
    editor.cursor_blink = False
    return editor


class TextEditor(Dialog[ScreenResultType | None]):
    """An editor for one text, with a note below it; returns None if the operator leaves."""

    DEFAULT_CSS = """
    #editor-box { width: 100%; height: 100%; }
    #editor-text { height: 1fr; border: none; padding: 0; background: $surface; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._before = text
        self._warned = False

    def action_leave(self) -> None:
        """Closes the editor; edited text is discarded only at the second attempt."""
        if self.query_one(TextArea).text == self._before or self._warned:
            self.dismiss(None)
            return
        self._warned = True
        self._say("esc again discards what was typed")

    def _say(self, text: str, role: Tone = Tone.WARN) -> None:
        self.query_one(WrappedLines).lines = [(safe(text, role),)]


class EditChoice(NamedTuple):
    """The new text, and whether a live server answers it instead of the recording."""

    text: str
    live: bool


class InputEditor(TextEditor[EditChoice]):
    """Asks for another text; returns None if the operator leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without running", id="input.leave", priority=True),
        Binding("ctrl+s,f2", "take", "run", tooltip="Run the turn with this text over the recording", id="input.take",
                priority=True),
        Binding("f4", "ask", "ask live", tooltip="Ask the provider with this text; first says where, and for how much",
                id="input.live", priority=True),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__(inert(text))
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        """Yields a title, the text, notes on it and the key bar."""
        with Vertical(id="editor-box"):
            yield note(one_line(self._title), Tone.TITLE)
            yield text_field(self._before, "editor-text")
            marks = " Control characters are shown as marks, and an edited text contains the marks." if (
                self._before != self._text) else ""
            yield lines(f"The recording answers up to this request; edited, it has no recorded answer.{marks}",
                        "editor-note")
            yield key_note("^s or F2 runs it over the recording · F4 asks live · esc leaves")

    def on_mount(self) -> None:
        """Focuses the end of the text."""
        area = self.query_one(TextArea)
        area.focus()
        area.move_cursor(area.document.end)

    def action_take(self) -> None:
        """Runs the edit over the recording."""
        self._give(live=False)

    def action_ask(self) -> None:
        """Asks a live server."""
        self._give(live=True)

    def _give(self, live: bool) -> None:
        text = self.query_one(TextArea).text
        if text == self._before and not live:
            self._say("the text is unchanged: edit it first")
        else:
            # An unedited text is returned unchanged: the shown text has marks in place of control characters.
            self.dismiss(EditChoice(self._text if text == self._before else text, live))


# -- The editor for a request's body ---------------------------------------------------------------------------------
# The body is shown as the JSON that will be sent. Invalid JSON is refused with line and column of the error.


class NotJSONError(ValueError):
    """An error in a JSON text, with line and column counted from 1."""

    def __init__(self, why: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {why}")
        self.line, self.column = line, column


class BodyEditor(TextEditor[str]):
    """Asks for another body; returns the changes in words, or None if the operator leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without changing anything", id="body.leave", priority=True),
        Binding("ctrl+s,f2", "take", "take", tooltip="Take the body as it stands", id="body.take", priority=True),
    ]

    def __init__(self, driver: Driver) -> None:
        live_request = driver.stepper.request
        super().__init__("" if live_request is None or live_request.body is None
                         else json.dumps(live_request.body, indent=2, ensure_ascii=False))
        self._driver = driver

    def compose(self) -> ComposeResult:
        """A title, the text, its errors, the keys."""
        with Vertical(id="editor-box"):
            yield note("The body of the request, as it will be sent", Tone.TITLE)
            yield text_field(self._before, "editor-text", show_line_numbers=True, tab_behavior="indent")
            yield lines("", "editor-note")
            yield key_note("^s or F2 takes it · esc leaves")

    def action_take(self) -> None:
        """Applies the text, unless it cannot be sent."""
        area = self.query_one(TextArea)
        try:
            self._driver.edit_body(body_of(area.text))
        except NotJSONError as why:
            area.move_cursor((why.line - 1, why.column - 1))
            self._say(f"✖ {why}", Tone.ERROR)
            return
        except LoopError as why:
            self._say(f"✖ {why}", Tone.ERROR)
            return
        self.dismiss("the body was edited" if area.text != self._before else None)


def body_of(text: str) -> dict[str, Any]:
    """The JSON object of a text. Raises `NotJSONError`, which has line and column, if the text is not a JSON object."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats)
    except json.JSONDecodeError as why:
        raise NotJSONError(why.msg, why.lineno, why.colno) from None
    except RecursionError:
        raise NotJSONError("nested too deeply", 1, 1) from None
    except ValueError:
        raise NotJSONError("a number has too many digits", 1, 1) from None
    except _MisplacedError as why:
        line, column = _place(text, why.word)
        raise NotJSONError(why.why, line, column) from None
    if not isinstance(value, dict):
        raise NotJSONError("expected an object", 1, 1)
    return value


class _MisplacedError(Exception):
    def __init__(self, word: str, why: str) -> None:
        super().__init__(why)
        self.word, self.why = word, why


def _refuse_constant(word: str) -> NoReturn:
    raise _MisplacedError(word, f"{word} is not JSON")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _MisplacedError(json.dumps(name, ensure_ascii=False), f"the key {name!r} occurs twice")
        found[name] = value
    return found


def _place(text: str, word: str) -> tuple[int, int]:
    """Line and column of the last occurrence of a word."""
    at = max(0, text.rfind(word))
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
