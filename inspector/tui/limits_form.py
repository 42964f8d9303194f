"""The form of a what-if: the settings in force, fields for other values, and a preview of their effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import DescendantFocus
from textual.timer import Timer
from textual.widgets import Input
from textual.worker import get_current_worker

from inspector.config.settings import CHOICES, INITIAL, Settings, parse_assignments, settings_of
from inspector.replay.rerun import start_of
from inspector.report.lines.glyphs import hint
from inspector.report.lines.spans import Line, Span, Tone
from inspector.tui.key_words import (
    DEFAULT,
    FIELD_DETAILS,
    FIELD_LABELS,
    FIELDS,
    OTHER_LIMITS,
    WORDS,
    others_in_force,
    word_meaning,
)
from inspector.tui.messages import after_pause
from inspector.tui.panels import (
    Cycle,
    Dialog,
    Note,
    WrappedLines,
    field_keys,
    field_row,
    key_note,
    line_input,
    lines,
    note,
)
from inspector.tui.run_views import RunLines
from inspector.tui.session_files import Run
from inspector.whatif.branch_lines import preview_line
from loop_core.errors import CallerError, LoopError
from loop_core.turn.limits import DEFAULT_TOKEN_FACTOR, TOTAL, Limits
from loop_core.turn.presets import POLICIES
from loop_core.turn.state import Turn

RECORDING, SIMULATION, LIVE = SOURCES = ("recording", "simulation", "live")
"""The sources of answers for the new run."""


def words_of(name: str) -> tuple[str, ...]:
    """The allowed words of a field."""
    if name == "policy":
        return tuple(POLICIES)
    return SOURCES if name == "source" else (DEFAULT, *CHOICES[name].words)


def word_of(settings: Settings, name: str) -> str:
    """The initial word of a field."""
    if name == "source":
        return SIMULATION if settings.simulate else RECORDING
    value = getattr(settings, name)
    return DEFAULT if value is None else CHOICES[name].write(value)


def value_in_force(turn: Turn, name: str) -> int | None:
    """The value in force of a limit, or of the initial max_tokens, in a turn."""
    if name == INITIAL:
        return turn.request.max_tokens
    value: int | None = getattr(turn.limits, name)
    return value


def value_of(turn: Turn, name: str) -> str:
    """The initial value of a field."""
    value = value_in_force(turn, name)
    return "" if value is None else f"{value}"


def default_of(turn: Turn, name: str, cap: str) -> str:
    """The value that an empty field means, if `cap` is typed as the initial max_tokens."""
    if name == INITIAL:
        return "recorded"
    if getattr(Limits(), name) is not None:
        return f"{getattr(Limits(), name)}"
    if cap.strip() and is_changed(turn, INITIAL, cap) and "tokens" not in turn.policy.lacks:
        first = None if problem_of(INITIAL, cap) else settings_of({INITIAL: cap}, Settings()).max_tokens
        return f"{Limits().token_cap(first) or 'default'}"  # it follows from max_tokens
    own = getattr(turn.limits, name) is not None  # then the default is another value than the one in force
    return "default" if own or turn.token_cap is None else f"{turn.token_cap}"


def short_value(turn: Turn, name: str) -> str:
    """The value in force, shortened for a field's row."""
    value = turn.token_cap if name == TOTAL else value_in_force(turn, name)
    return "not set" if value is None else f"now {value:,}"


def limit_details(turn: Turn, name: str) -> str:
    """The details of a limit: the value in force, and the default."""
    value = value_in_force(turn, name)
    if name == INITIAL:
        now = "not set in the request" if value is None else f"now {value:,}"
        return f"{now} · another value is simulated, or asked live"
    default = getattr(Limits(), name)
    if default is not None:
        return f"now {value:,} · default {default:,}"
    cap = turn.token_cap
    if cap is None:
        return f"no bound now: {DEFAULT_TOKEN_FACTOR} × max_tokens, not set"
    return f"now {cap:,} · default {DEFAULT_TOKEN_FACTOR} × max_tokens"


def field_line(turn: Turn, name: str, word: str) -> Line:
    """The description of a field: the meaning of its word, or for a number the setting's name, value and default."""
    if name not in FIELDS:
        return (Span(word_meaning(name, word) or FIELD_DETAILS[name], Tone.DIM),)
    return (Span(f"{name}: {FIELD_DETAILS[name]} · {limit_details(turn, name)}", Tone.DIM),)


def is_changed(turn: Turn, name: str, value: str) -> bool:
    """Whether a typed value differs from the one in force; an empty field means the default, if there is one."""
    plain = value.strip().replace(",", "").replace("_", "")
    return plain != value_of(turn, name)


def problem_of(name: str, value: str) -> str | None:
    """The reason why the engine refuses a value; None if it accepts it."""
    try:
        settings_of(parse_assignments(value.split()) if name == OTHER_LIMITS else {name: value}, Settings())
    except CallerError as why:
        return str(why).removeprefix(f"{name}: ").removeprefix("--set ")
    return None


KEYS = tuple(f"enter {does} · esc leaves · ↑ ↓ fields · ← → words" for does in ("runs", "shows costs"))
"""The form's keys for a run that we answer, then for one that the provider answers; they fit into 60 columns."""


class LimitsChoice(NamedTuple):
    """The settings that the operator chose."""

    assignments: dict[str, str]
    live: bool = False
    """Whether the provider answers; the address and the cost are shown before anything is sent."""


class LimitsForm(Dialog[LimitsChoice | None]):
    """Asks for other settings; returns None if the operator leaves."""

    DEFAULT_CSS = """
    #form { width: 90; scrollbar-size-vertical: 1; }
    #form .name { width: 29; max-width: 60%; padding: 0 1 0 0; }
    #form Input { width: 11; margin: 0 1 0 0; }
    #form #others, #form .about { width: 1fr; }
    #form Cycle { width: 20; margin: 0 1 0 0; }
    #form #about { min-height: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave", tooltip="Leave without running", id="form.leave"),
        *field_keys("form"),
        Binding("enter", "run", "run", tooltip="Run with these", id="form.run"),
    ]

    def __init__(
        self, runs: Sequence[Run], current: int, step: int, since: int | None, live: Mapping[str, str] | None
    ) -> None:
        """`live` opens the form for a live answer with these settings, which are a guess."""
        super().__init__()
        self._opens_live, self._guess = live is not None, live or {}
        self._runs, self._current, self._since = runs, current, since
        self._view = runs[current].view
        self._settings = self._view.replay.settings
        self._turn = self._view.effective_step(step).turn
        self._step = step
        self._waiting: Timer | None = None
        self._cap = ""
        """The max_tokens that was typed before the recording was chosen, which answers only at its own."""

    def compose(self) -> ComposeResult:
        """A row for each setting, a preview, then the existing runs."""
        with VerticalScroll(id="form", can_focus=False):
            where = "from the start" if self._since is None else f"from step {self._since + 1:,} on"
            number = self._view.replay.turn_at(self._step) + 1
            yield note(f"Run again {where} · values of turn {number:,}", Tone.TITLE, id="form-title")
            for name in FIELDS:
                value = self._guess.get(name) or value_of(self._turn, name)
                yield field_row(FIELD_LABELS[name],
                                line_input(value, default_of(self._turn, name, self._guess.get(INITIAL, "")), name),
                                note(short_value(self._turn, name), id=f"note-{name}", classes="about"))
            for name in WORDS:
                word = LIVE if name == "source" and self._opens_live else word_of(self._settings, name)
                yield field_row(FIELD_LABELS[name], Cycle(words_of(name), word, id=name),
                                note("", id=f"note-{name}", classes="about"))
            others = " ".join(f"{name}={value}" for name, value in self._guess.items() if name not in FIELDS)
            yield field_row(FIELD_LABELS[OTHER_LIMITS],
                            line_input(others, others_in_force(self._turn.limits), OTHER_LIMITS))
            yield lines("", "about")
            yield lines("nothing is changed yet", "preview")
            most = max(1, min(MOST_RUNS, self.app.size.height - OTHER_ROWS))
            runs = self._runs if len(self._runs) <= most else self._runs[-most:]
            yield RunLines(runs, self._current - (len(self._runs) - len(runs)), self._view.replay.turn_at(self._step))
            yield key_note(KEYS[self._opens_live], id="form-keys")

    def on_mount(self) -> None:
        """Focuses the first field, or max_tokens for a live answer, and shows the preview."""
        guessed = [name if name in FIELDS else OTHER_LIMITS for name in self._guess]
        self.query_one(f"#{(guessed or [INITIAL if self._opens_live else FIELDS[0]])[0]}", Input).focus()
        if self._opens_live:
            self._ask()

    @on(Input.Changed)
    def _handle_input(self, event: Input.Changed) -> None:
        if event.input.id is not None:
            problem = self._say(event.input.id, event.value)
            if event.input.has_focus:
                self._explain(event.input.id, problem)
            if event.input.id == INITIAL:
                bound = TOTAL
                self.query_one(f"#{bound}", Input).placeholder = default_of(self._turn, bound, event.value)
                if event.input.has_focus:
                    self._answer_at(event.value)
            self._preview_soon()

    def _answer_at(self, cap: str) -> None:
        """Keeps source and max_tokens consistent: a recording answers only at its own, a simulation at any."""
        source = self.query_one("#source", Cycle)
        if source.value != LIVE:
            own = not cap.strip() or not is_changed(self._turn, INITIAL, cap)
            source.value = word_of(self._settings, "source") if own else SIMULATION

    @on(Cycle.Changed)
    def _handle_cycle(self, event: Cycle.Changed) -> None:
        if event.cycle.has_focus:
            self._explain(event.cycle.id or "", None)
        cap = self.query_one(f"#{INITIAL}", Input)
        if event.cycle.id == "source":
            self.query_one("#form-keys", Note).line = hint(KEYS[self._live])
        if event.cycle.id == "source" and event.cycle.has_focus:
            if event.cycle.value == RECORDING:
                self._cap, cap.value = cap.value, (
                    "" if self._settings.max_tokens is not None else value_of(self._turn, INITIAL))
            elif self._cap:  # the next source gets the typed value back
                cap.value, self._cap = self._cap, ""
        self._preview_soon()

    @on(Input.Submitted)
    def action_run(self) -> None:
        """Runs with the settings, unless a value is invalid."""
        wrong = [name for name in (*FIELDS, OTHER_LIMITS) if self._say(name, self.query_one(f"#{name}", Input).value)]
        if wrong:
            field = self.query_one(f"#{wrong[0]}", Input)
            field.focus()
            self._explain(wrong[0], problem_of(wrong[0], field.value))
            return
        if self._live and self._refusal is not None:
            self._show_preview((Span(f"✖ {self._refusal}", Tone.ERROR),))
            return
        self.dismiss(LimitsChoice(self._assignments(), self._live))

    @property
    def _live(self) -> bool:
        """Whether the form asks for live answers of the provider."""
        return self.query_one("#source", Cycle).value == LIVE

    @property
    def _refusal(self) -> str | None:
        """Why the provider cannot answer; None if it can."""
        try:
            return live_refusal(self._runs[self._current], self._step if self._since is None else self._since,
                           self._since is None)
        except LoopError as why:
            return str(why)

    def _assignments(self) -> dict[str, str]:
        typed = {name: self.query_one(f"#{name}", Input).value for name in FIELDS}
        chosen = {name: self.query_one(f"#{name}", Cycle).value for name in WORDS}
        source = chosen.pop("source")
        simulate = source == SIMULATION
        return {
            **({"simulate": "yes" if simulate else "no"} if simulate is not self._settings.simulate else {}),
            **{name: value for name, value in typed.items() if is_changed(self._turn, name, value)},
            **{name: value for name, value in chosen.items() if value != word_of(self._settings, name)},
            **parse_assignments(self.query_one(f"#{OTHER_LIMITS}", Input).value.split()),
        }

    def _say(self, name: str, value: str) -> str | None:
        """Marks a field if its value is invalid, and returns the problem."""
        problem = problem_of(name, value)
        if name == OTHER_LIMITS:
            return problem
        short = Span(short_value(self._turn, name), Tone.DIM) if problem is None else Span("✖ see below", Tone.ERROR)
        self.query_one(f"#note-{name}", Note).line = (short,)
        return problem

    def _explain(self, name: str, problem: str | None) -> None:
        """Shows the problem of a field in full, or else its description."""
        word = self.query_one(f"#{name}", Cycle).value if name in WORDS else ""
        line = (Span(f"✖ {name}: {problem}", Tone.ERROR),) if problem else field_line(self._turn, name, word)
        self.query_one("#about", WrappedLines).lines = [line]

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Shows the description of the newly focused field."""
        name = event.widget.id or ""
        if name in FIELD_DETAILS:
            self._explain(name, problem_of(name, self.query_one(f"#{name}", Input).value) if name in FIELDS else None)

    # -- the preview ---------------------------------------------------------------------------------------------

    def _preview_soon(self) -> None:
        self._waiting = after_pause(self, self._waiting, self._ask)

    def _ask(self) -> None:
        self.workers.cancel_group(self, "preview")  # of values that were typed before
        if any(problem_of(name, self.query_one(f"#{name}", Input).value) for name in (*FIELDS, OTHER_LIMITS)):
            self._show_preview((Span("a value is invalid: nothing would run", Tone.DIM),))
        elif self._live:
            values = self._assignments()
            guesses = [name for name, value in self._guess.items() if values.get(name) == value]
            self._show_preview(live_effect(self._refusal, {name: values[name] for name in guesses}))
        else:
            self._look(self._assignments())

    @work(thread=True, exclusive=True, group="preview")
    def _look(self, assignments: Mapping[str, str]) -> None:
        """Computes the preview in a thread, since a session of thousands of turns takes a moment."""
        try:
            line = preview_line(self._view.replay, assignments, self._since)
        except LoopError as why:
            line = (Span(f"✖ {why}", Tone.ERROR),)
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._show_preview, line)

    def _show_preview(self, line: Line) -> None:
        for preview in self.query("#preview").results(WrappedLines):  # none if the form was closed meanwhile
            preview.lines = [line]


MOST_RUNS, OTHER_ROWS = 4, 19
"""The most runs that the form lists (`R` shows all), and the rows of the form without them."""


def live_refusal(run: Run, step: int, whole: bool) -> str | None:
    """The reason why the request at a step, or its whole turn, cannot be sent live; None if it can. Raises
    `CallerError` if an earlier answer of the turn was simulated."""
    from inspector.live.target import why_unsendable

    replay = run.view.replay
    since = replay.turns[replay.turn_at(step)].first if whole else step
    return why_unsendable(replay.case.recording.exchanges[start_of(replay, since).opening.index])


def live_effect(refused: str | None, guesses: Mapping[str, str]) -> Line:
    """The effect of choosing a live answer, in one line, with the settings whose value the inspector guessed."""
    if refused is not None:
        return (Span(f"✖ live: {refused}", Tone.ERROR),)
    if guesses:
        guess_text = " and ".join(f"{name} {int(value):,}" for name, value in guesses.items())
        return (Span(f"{guess_text} {'are guesses' if len(guesses) > 1 else 'is a guess'} · "),
                Span("asks the provider", Tone.WARN), Span(": enter sends nothing yet"))
    return (Span("asks the provider", Tone.WARN), Span(": enter shows where, and for how much; nothing is sent yet"))
