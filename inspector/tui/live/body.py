"""The editor for a request's body: JSON as it will be sent. What is no JSON, or no request, is told and not taken."""

from __future__ import annotations

import json
from typing import Any, ClassVar, NoReturn

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import TextArea

from inspector.live.driver import Driver
from inspector.report.lines.spans import Role, said
from inspector.tui.widgets.lines import Lines, lines
from inspector.tui.widgets.note import note
from loop_core.errors import LoopError


class NotJSONError(ValueError):
    """What is wrong, and where: line and column from 1."""

    def __init__(self, why: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {why}")
        self.line, self.column = line, column


class BodyEditor(ModalScreen[str | None]):
    """Asks for another body; gives what was changed in words, None where the operator leaves."""

    DEFAULT_CSS = """
    BodyEditor { align: center middle; background: $background 60%; }
    #body-box { width: 100%; height: 100%; padding: 0 1; background: $surface; border: round $primary; }
    #body-text { height: 1fr; border: none; padding: 0; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave without changing anything", id="body.leave", priority=True),
        Binding("ctrl+s,f2", "take", "take", tooltip="Take the body as it stands", id="body.take", priority=True),
    ]

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self._driver = driver
        asked = driver.stepper.asked
        self._before = "" if asked is None or asked.body is None else json.dumps(asked.body, indent=2,
                                                                                  ensure_ascii=False)
        self._warned = False

    def compose(self) -> ComposeResult:
        """A title, the text, what is wrong with it, the keys."""
        with Vertical(id="body-box"):
            yield note("The body of the request, as it will be sent", Role.TITLE)
            area = TextArea(self._before, soft_wrap=True, show_line_numbers=True, tab_behavior="indent", id="body-text")
            area.cursor_blink = False
            yield area
            yield lines("", "body-note")
            yield note("^s or F2 takes it · esc leaves")

    def on_mount(self) -> None:
        """The text in hand."""
        self.query_one(TextArea).focus()

    def action_leave(self) -> None:
        """Leaves; what was typed is given up at the second time only."""
        if self.query_one(TextArea).text == self._before or self._warned:
            self.dismiss(None)
            return
        self._warned = True
        self._say("esc again gives up what was typed", Role.WARN)

    def action_take(self) -> None:
        """Takes the text, unless it cannot be sent."""
        area = self.query_one(TextArea)
        try:
            self._driver.edit_body(body_of(area.text))
        except NotJSONError as why:
            area.move_cursor((why.line - 1, why.column - 1))
            self._say(f"✖ {why}", Role.ERROR)
            return
        except LoopError as why:
            self._say(f"✖ {why}", Role.ERROR)
            return
        self.dismiss("the body was edited" if area.text != self._before else None)

    def _say(self, text: str, role: Role) -> None:
        self.query_one("#body-note", Lines).lines = [(said(text, role),)]


def body_of(text: str) -> dict[str, Any]:
    """The JSON object that a text is.

    Raises:
        NotJSONError: it is none, with the place.
    """
    try:
        value = json.loads(text, parse_constant=_refused, object_pairs_hook=_once)
    except json.JSONDecodeError as why:
        raise NotJSONError(why.msg, why.lineno, why.colno) from None
    except RecursionError:
        raise NotJSONError("nested too deeply", 1, 1) from None
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


def _refused(word: str) -> NoReturn:
    raise _MisplacedError(word, f"{word} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _MisplacedError(json.dumps(name, ensure_ascii=False), f"the key {name!r} stands twice")
        found[name] = value
    return found


def _place(text: str, word: str) -> tuple[int, int]:
    """Line and column of the last place of a word."""
    at = max(0, text.rfind(word))
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
