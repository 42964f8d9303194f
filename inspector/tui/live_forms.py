"""The forms of a live turn: its start, and the budget of its waiting request.

A live turn starts with a prompt, and with a real server or a scenario that the app plays itself. A scenario needs no
key, address or second terminal, because the scripted provider starts and ends with the turn. The form stores what was
typed last, but never a credential.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Input

from inspector.config.settings import CHOICES, INITIAL, Settings, parse_assignments
from inspector.live.driver import Driver
from inspector.live.headless import LiveOptions, LiveStart, start
from inspector.live.inputs import secrets_of
from inspector.live.scripted import ENOUGH_TOKENS, ScriptedTurn, formats_of, scenario_turn
from inspector.provider.scenarios import scenario_names
from inspector.report.lines.spans import Tone, safe
from inspector.sessions import redact
from inspector.tui.key_words import OTHER_LIMITS, others_in_force
from inspector.tui.live_run import with_field_names
from inspector.tui.panels import Cycle, Dialog, WrappedLines, field_keys, field_row, key_note, line_input, lines, note
from inspector.tui.session_files import keep_state, stored_state
from loop_core.errors import CallerError, EncodeError, LoopError
from loop_core.formats import FORMATS
from loop_core.turn.limits import DEFAULT_TOKEN_FACTOR, SHORT_NAMES, Limits
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import encode_request
from loop_core.wire.profiles import PROFILES

if TYPE_CHECKING:
    from inspector.provider.scenarios import Story

REAL_SERVER = "a real server"
FIRST_SCENARIO = "lying-router"
"""The scenario with which the form opens the first time. Its stop word is false."""
BY_ADDRESS = "by address"
ROWS: tuple[tuple[str, str, str], ...] = (
    ("prompt", "prompt", "what the user says"),
    ("model", "model", "by the server's name for it"),
    ("base", "base URL", "empty for the provider's own; http://127.0.0.1:8080"),
    ("messages", "or messages from", "a JSON file: a list of messages, or a complete request body"),
    ("tools", "tools", "a JSON file, or MODULE:ATTR with Python callables"),
    ("results", "tool results from", "a recording that answers the calls"),
    ("key_env", "key from", "the environment variable of a server of your own"),
    ("assignments", "limits", "max_tokens=NUMBER"),
)
"""Field of `LiveOptions`, its label, and a hint about its values."""
LABELS: Mapping[str, str] = {
    {"base": "base-url"}.get(name, name.replace("_", "-")): label.removeprefix("or ") for name, label, _ in ROWS}
"""Option of `inspector run`, without its dashes -> the label of its field in the form."""
SHARED_FIELDS = ("prompt", "assignments")
"""Fields that a scenario uses too; the model, the address and the tools come with the scenario."""
CREDENTIALS = "keys come from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY… each for its own host"


class LiveForm(Dialog[LiveStart | ScriptedTurn | None]):
    """Asks for a live turn; returns None if the operator leaves."""

    DEFAULT_CSS = """
    #live-form { width: 90; scrollbar-size-vertical: 1; }
    #live-form .name { width: 20; max-width: 40%; padding: 0 1 0 0; }
    #live-form Input, #live-form Cycle { width: 1fr; }
    LiveForm.-scripted .of-server { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave", tooltip="Leave; nothing is sent", id="begin.leave"),
        *field_keys("begin"),
        Binding("enter", "begin", "begin", tooltip="Begin the turn: nothing is sent yet", id="begin.begin"),
    ]

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._before = last_typed()
        self._stories: Mapping[str, Story] = {}
        """The scenarios by name; empty until they are read."""
        self._api = self._shown_api = ""
        """The wire format that the operator chose, and the one shown last, which a scenario may override."""

    def compose(self) -> ComposeResult:
        """A row for each field."""
        before = self._before
        with VerticalScroll(id="live-form", can_focus=False):
            yield note("A live turn: each effect waits for your key", Tone.TITLE)
            yield from self._fields(ROWS[:1])
            for name, words, choices, first in (
                ("scenario", "who answers", (REAL_SERVER, *scenario_names()), FIRST_SCENARIO),
                ("api", "wire format", tuple(FORMATS), next(iter(FORMATS))),
                ("profile", "behaves as", (BY_ADDRESS, *sorted(PROFILES)), BY_ADDRESS),
            ):
                value = before.get(name, first)
                yield field_row(words, Cycle(choices, value if value in choices else first, id=name))
            yield from self._fields(ROWS[1:])
            yield lines(CREDENTIALS, "live-note")
            yield key_note("enter begins · esc leaves · ↑ ↓ fields · ← → words")

    def _fields(self, rows: Sequence[tuple[str, str, str]]) -> ComposeResult:
        """Yields a typed field for each of these rows."""
        for name, words, hint in rows:
            yield field_row(words, line_input(self._before.get(name, ""), hint, name),
                            classes="field" if name in SHARED_FIELDS else "field of-server")

    def on_mount(self) -> None:
        """Focuses the prompt, or the model if a real server has none yet."""
        self._show_fields()
        self.query_one("#prompt" if self._scenario or self._before.get("model") else "#model").focus()
        self._read()

    @work(thread=True)
    def _read(self) -> None:
        """Reads the scenarios after the form is shown."""
        from inspector.provider.reading import all_stories

        self.app.call_from_thread(self._have, all_stories())

    def _have(self, stories: Mapping[str, Story]) -> None:
        self._stories = stories
        if self.is_attached:
            self._show_fields()

    @property
    def _scenario(self) -> str | None:
        """The chosen scenario; None for a real server."""
        value = self.query_one("#scenario", Cycle).value
        return None if value == REAL_SERVER else value

    @on(Cycle.Changed, "#scenario")
    def _show_fields(self) -> None:
        """Shows the fields of a scenario or those of a server."""
        self.set_class(self._scenario is not None, "-scripted")
        story, api = self._stories.get(self._scenario or ""), self.query_one("#api", Cycle)
        if api.value != self._shown_api:
            self._api = api.value
        formats = formats_of(story) if story is not None else tuple(FORMATS)
        api.value = self._shown_api = self._api if self._api in formats else formats[0]
        self._describe()

    @on(Cycle.Changed, "#api")
    def _describe(self) -> None:
        """Shows what the scenario does, and its prompt as the hint of the empty field."""
        prompt, limits = self.query_one("#prompt", Input), self.query_one("#assignments", Input)
        hints = {name: hint for name, _, hint in ROWS}
        api = self.query_one("#api", Cycle).value
        needed = self._scenario is None and self._settings.max_tokens is None and needs_cap(api)
        text = f"{api} needs max_tokens: write it into limits · {CREDENTIALS}" if needed else CREDENTIALS
        prompt.placeholder = hints["prompt"]
        limits.placeholder = f"{hints['assignments']} {_in_force(self._settings)}"
        story = self._stories.get(self._scenario or "")
        if self._scenario is not None and story is None:
            text = ""
        if story is not None:
            from inspector.provider.faults import stop_word_of  # loaded with the scenarios

            cuts = [fault for fault in story.faults if fault.name == "cut"]
            once = "once, " if len(cuts) == 1 and cuts[0].segment is not None else ""
            at = ", then ".join(str(fault.value) for fault in cuts)
            cut = f" It cuts {once}at {at} tokens, whatever max_tokens is." if cuts else ""
            text = (f"{story.story} {stop_word_of(story)}{cut} Played on a free port of this machine: no key; "
                    "it ends with the turn.")
            prompt.placeholder = story.prompt
            limits.placeholder = f"max_tokens={story.max_tokens or ENOUGH_TOKENS} {_in_force(self._settings)}"
        self._say(text, Tone.WARN if needed else Tone.DIM)

    def _say(self, text: str, role: Tone) -> None:
        self.query_one("#live-note", WrappedLines).lines = [(safe(text, role),)]

    @on(Input.Submitted)
    def action_begin(self) -> None:
        """Starts the turn, unless a field is invalid."""
        try:
            begun = self._make_turn()
        except LoopError as why:
            self._say(f"✖ {with_field_names(why, LABELS)}", Tone.ERROR)
            return
        keep_typed(self._values())
        self.dismiss(begun)

    def _values(self) -> dict[str, str]:
        """The value of each field."""
        words = {name: self.query_one(f"#{name}", Cycle).value for name in ("scenario", "api", "profile")}
        return {**words, **{name: self.query_one(f"#{name}", Input).value.strip() for name, _, _ in ROWS}}

    def _make_turn(self) -> LiveStart | ScriptedTurn:
        values = self._values()
        profile = None if values["profile"] == BY_ADDRESS else values["profile"]
        try:
            limits = shlex.split(values["assignments"])
        except ValueError as why:
            raise CallerError(f"limits: {why}") from None
        if self._scenario is not None:
            from inspector.provider.reading import all_stories

            typed = LiveOptions(values["api"], "", "", profile, values["prompt"] or None, assignments=limits)
            return scenario_turn(all_stories()[self._scenario], typed, self._settings)
        if not values["model"]:
            raise CallerError("the model is not named")
        if bool(values["prompt"]) is bool(values["messages"]):
            raise CallerError("expected either a prompt or a file of messages")
        return start(LiveOptions(
            values["api"], values["model"], values["base"], profile, values["prompt"] or None,
            values["messages"] or None, values["tools"] or None, values["results"] or None, assignments=limits,
            key_env=values["key_env"] or None,
        ), self._settings)


@cache
def needs_cap(api: str) -> bool:
    """Whether a format requires max_tokens, so that its encoder refuses a request without it."""
    try:
        encode_request(api, Request(api, (Message(Role.USER, (TextPart("."),)),), "m"))
    except EncodeError as why:
        return why.what == INITIAL
    return False


def _in_force(settings: Settings) -> str:
    """A limit with the value that applies if the field is empty."""
    return f"continuation_max_attempts={settings.limits.continuation_max_attempts}"


# -- The values typed last -------------------------------------------------------------------------------------------
# They are saved in the state folder. A field that may hold a credential is not saved at all.


def last_typed() -> dict[str, str]:
    """The last typed values of the fields; empty if unknown."""
    value = stored_state("live-form.json")
    return {name: text for name, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def keep_typed(values: Mapping[str, str]) -> None:
    """Saves the values of the fields, if the file can be written."""
    public_values = {name: value for name, value in values.items() if value and not _secret(name, value)}
    keep_state("live-form.json", json.dumps(public_values).encode())


def _secret(name: str, value: str) -> bool:
    """Whether a field may hold a credential, such as a key typed in place of its variable's name."""
    if name == "key_env" and value not in os.environ:
        return True
    return redact.text(value) != value or any(secret in value for secret in secrets_of(os.environ))


# -- The form for the waiting effect: the budget of the request, and the limits of the turn from now on --------------
# A value is checked by the engine's own rule. A limit under which earlier steps of the turn would have been different
# is refused, because those steps have already happened.


class BudgetForm(Dialog[str | None]):
    """Asks for another budget and other limits; returns the changes in words, or None if the operator leaves."""

    DEFAULT_CSS = """
    #budget { width: 90; scrollbar-size-vertical: 1; }
    #budget .name { width: 42; max-width: 60%; padding: 0 1 0 0; }
    #budget Input { width: 16; margin: 0 1 0 0; }
    #budget #others { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave", tooltip="Leave without changing anything", id="budget.leave"),
        *field_keys("budget"),
        Binding("enter", "take", "take", tooltip="Take these", id="budget.take"),
    ]

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self._driver = driver
        live_request, limits = driver.stepper.request, driver.stepper.plan.limits
        cap = live_request.request.max_tokens if live_request is not None else None
        self._fields = (*((INITIAL,) if live_request is not None else ()), *SHORT_NAMES)
        self._before = {name: _field_text(cap if name == INITIAL else getattr(limits, name)) for name in self._fields}

    def compose(self) -> ComposeResult:
        """A row for each field."""
        with VerticalScroll(id="budget", can_focus=False):
            yield note("What waits: its budget, and the limits of the turn", Tone.TITLE)
            for name in self._fields:
                yield field_row(f"{name} of this request" if name == INITIAL else name,
                                line_input(self._before[name], _empty(name), name))
            yield field_row("other limits, NAME=VALUE",
                            line_input("", others_in_force(self._driver.stepper.plan.limits), OTHER_LIMITS))
            yield lines("limits apply to the whole turn: a value that the turn has already exceeded is refused",
                        "budget-note")
            yield key_note("enter takes them · esc leaves · ↑ ↓ fields")

    @on(Input.Submitted)
    def action_take(self) -> None:
        """Applies the typed values, unless one is invalid."""
        try:
            typed = self._read_fields()
            cap = self._cap(typed)
            names = [name for name in typed if name != INITIAL]
            limits = self._driver.stepper.plan.limits.with_values({name: typed[name] for name in names})
            self._driver.edit(limits, names, cap)
        except LoopError as why:
            self.query_one("#budget-note", WrappedLines).lines = [(safe(f"✖ {why}", Tone.ERROR),)]
            return
        self.dismiss(", ".join(f"{name} {value or 'default'}" for name, value in typed.items()) or None)

    def _read_fields(self) -> dict[str, str]:
        """The typed values that differ from those in force."""
        values = {name: self.query_one(f"#{name}", Input).value.strip() for name in self._fields}
        changed = {name: value for name, value in values.items() if value != self._before[name]}
        others = parse_assignments(self.query_one(f"#{OTHER_LIMITS}", Input).value.split())
        wrong = next((name for name in others if name in CHOICES), None)
        if wrong is not None:
            raise CallerError(f"{wrong} is not a limit")
        return {**{name: value or _default(name) for name, value in changed.items()}, **others}

    def _cap(self, fields: dict[str, str]) -> int | None:
        live_request = self._driver.stepper.request
        if INITIAL in fields:
            cap: int | None = CHOICES[INITIAL].parse(fields[INITIAL])
            return cap
        return live_request.request.max_tokens if live_request is not None else None


def _field_text(value: int | None) -> str:
    return "" if value is None else str(value)


def _default(name: str) -> str:
    return "" if name == INITIAL else _field_text(getattr(Limits(), name)) or "none"


def _empty(name: str) -> str:
    if name == INITIAL:
        return "not set"
    return _field_text(getattr(Limits(), name)) or f"{DEFAULT_TOKEN_FACTOR} × max_tokens"
