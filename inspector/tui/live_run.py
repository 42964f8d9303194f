"""Sends a recorded turn again, live: the confirmation before anything is sent, and the run in progress.

Nothing is sent while the confirmation is open. The key that confirms differs from the key that opened it, and a key
that is held down does not confirm. Only one live run is in progress at a time; other work can continue.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.timer import Timer
from textual.widgets import Input

from inspector.config.files import data_folder
from inspector.config.settings import settings_asked
from inspector.report.lines.glyphs import hint
from inspector.report.lines.spans import Line, Span, Tone, count_of, field, more, one_line, safe
from inspector.tui.messages import after_pause
from inspector.tui.panels import Dialog, Note, WrappedLines, key_note, line_input, note
from inspector.tui.stage import SessionPart, SessionStage
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.config.settings import Settings
    from inspector.live.branch_request import BranchRequest
    from inspector.live.branch_run import BranchRun
    from inspector.whatif.tree import Node

# -- The question: the address of the request, whose key it uses, and its highest cost -------------------------------

REPEAT_TIME = 0.4
"""The seconds within which another key event may be the repetition of a held key."""


KEYS = "y asks the provider now · p asks a stand-in · esc leaves · tab fields"
KEYS_IF_REFUSED = "p asks a stand-in · esc leaves · tab fields"
KEYS_WITHOUT_KEY = "no key is set · p asks a stand-in · esc leaves"


class CostLines(WrappedLines, can_focus=True):
    """The request that would be sent, as wrapped lines."""


def with_field_names(message: object, labels: Mapping[str, str]) -> str:
    """A message of a command with the form's fields in place of options such as `--base-url`."""
    return re.sub(r"--([a-z][a-z-]*)", lambda found: labels.get(found[1], found[0]), str(message))


class AskLive(Dialog["BranchRequest | None"]):
    """Asks whether to send the request; returns None if the operator leaves."""

    DEFAULT_CSS = """
    #ask { width: 100; border: round $warning; scrollbar-size-vertical: 1; }
    #ask .field Note { width: 15; }
    #ask Input { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "leave", tooltip="Leave; nothing is sent", id="ask.leave", priority=True),
        Binding("y", "ask", "ask", tooltip="Ask the provider now", id="ask.now"),
        Binding("p", "play", "play", id="ask.play",
                tooltip="Let a stand-in on this machine answer, with a made-up rest; it needs no key"),
        Binding("tab,down", "app.focus_next", "Next field", priority=True, tooltip="The next field",
                id="ask.down"),
        Binding("shift+tab,up", "app.focus_previous", "Previous field", priority=True, tooltip="The previous field",
                id="ask.up"),
        Binding("pagedown", "scroll(1)", "Page down", tooltip="Scroll down", id="ask.page-down"),
        Binding("pageup", "scroll(-1)", "Page up", tooltip="Scroll up", id="ask.page-up"),
    ]
    AUTO_FOCUS = ""  # the focus is set without scrolling, so that the title stays in sight where there is little room

    def __init__(
        self, title: str, live: Callable[[str, str], BranchRequest], stand_in: Callable[[], BranchRequest]
    ) -> None:
        """`live` makes the request for a base URL and a model, `stand_in` the one that a stand-in answers."""
        super().__init__()
        self._title, self._live, self._stand_in = title, live, stand_in
        self._request: BranchRequest | None = None
        self._waiting: Timer | None = None
        self._pressed = 0.0

    def compose(self) -> ComposeResult:
        """Yields the request, two fields and the key bar."""
        with VerticalScroll(id="ask", can_focus=False):
            yield note(self._title, Tone.TITLE, id="ask-title")
            yield CostLines(id="ask-about")
            for name in OPTION_FIELDS:
                with Horizontal(classes="field"):
                    yield note(name, Tone.KEY)
                    yield line_input("", "as it was recorded", name)
            yield key_note(KEYS, Tone.WARN, id="ask-keys")

    def on_mount(self) -> None:
        """Focuses no field, so that typing confirms nothing."""
        self._pressed = monotonic()
        self.query_one(CostLines).focus(scroll_visible=False)
        self._read()

    def action_ask(self) -> None:
        """Confirms, unless the key is held down, no request can be made, or the provider's key is missing."""
        now = monotonic()
        # A refused press counts too, so that a held key never confirms, however long it is held.
        held, self._pressed = now - self._pressed < REPEAT_TIME, now
        if self._waiting is not None or self._request is None or held:
            return
        if self._request.target.missing:
            self.query_one("#ask-keys", Note).line = (Span("nothing was sent · ", Tone.WARN), *hint(KEYS_WITHOUT_KEY))
        else:
            self.dismiss(self._request)

    def action_play(self) -> None:
        """Lets a stand-in answer instead of the provider."""
        try:
            self.dismiss(self._stand_in())
        except LoopError as why:
            self.query_one(CostLines).lines = [field("cannot", safe(str(why), Tone.ERROR))]

    def action_scroll(self, by: int) -> None:
        """Scrolls the description of the request by a page."""
        box = self.query_one("#ask", VerticalScroll)
        box.scroll_relative(y=by * max(1, box.size.height - 2), animate=False)

    @on(Input.Submitted)
    def _leave_field(self) -> None:
        """Takes the focus away from a field on enter, which must not send the request."""
        self.query_one(CostLines).focus()

    @on(Input.Changed)
    def _read_soon(self) -> None:
        self._waiting = after_pause(self, self._waiting, self._read)

    def _read(self) -> None:
        self._waiting = None
        base, model = (self.query_one(f"#{name}", Input).value.strip() for name in OPTION_FIELDS)
        try:
            self._request = self._live(base, model)
            lines = request_fields(self._request)
        except LoopError as why:
            message = with_field_names(why, {name: name for name in OPTION_FIELDS})
            self._request, lines = None, [field("cannot", safe(message, Tone.ERROR))]
        self.query_one(CostLines).lines = lines
        keys = self.query_one("#ask-keys", Note)
        if self._request is None:
            keys.line = (Span("nothing can be sent · ", Tone.WARN), *hint(KEYS_IF_REFUSED))
        else:
            keys.line = hint(KEYS_WITHOUT_KEY if self._request.target.missing else KEYS, Tone.WARN)


OPTION_FIELDS = ("base-url", "model")
"""The fields of the question, each with the option of `replay --live` for its name."""


def request_fields(request: BranchRequest) -> list[Line]:
    """The request that would be sent, one field per line."""
    from inspector.live.branch_request import NOT_ENCRYPTED, cost_lines, tools_line

    target = request.target
    most, *basis = cost_lines(request)
    lines = [
        field("live", Span("asks the provider, at a cost; nothing is sent yet", Tone.WARN)),
        field("goes to", safe(target.url, Tone.STRONG)),
        field("as", safe(f"{target.server.api} · model {target.model or 'not named'} · {target.profile.name}")),
        field("settings", safe(request.under)),
        field("key", safe(f"✖ none: {target.missing}", Tone.ERROR) if target.missing else
              safe(target.key, Tone.PLAIN if target.variable else Tone.DIM)),
        field("at most", safe(most, Tone.STRONG)), *(more(safe(line, Tone.DIM)) for line in basis),
        field("calls", safe(tools_line(request))),
        field("or", Span("p: "), Span("a stand-in answers: what was recorded, then made-up text", Tone.DIM)),
    ]
    return [*lines, *([field("beware", Span(NOT_ENCRYPTED, Tone.ERROR))] if target.unencrypted else [])]


# -- The run in progress ---------------------------------------------------------------------------------------------

PROGRESS_PERIOD = 0.25
"""The seconds between two updates of the progress of a live run."""


class RunUnderWay(WrappedLines):
    """The live run in progress: how far it is, the key that stops it, and the server that is asked."""

    DEFAULT_CSS = "RunUnderWay { padding: 0 1; background: $surface; }"


def progress_line(wanted: BranchRequest, requests: int, chars: int, seconds: float) -> Line:
    """The progress of a live run; the most important part comes first, because a narrow screen wraps the line."""
    most = f" of at most {wanted.cost.requests:,}" if wanted.cost.requests is not None else ""
    whom = "a stand-in on this machine" if wanted.stand_in is not None else (
        f"{wanted.target.url}, model {wanted.target.model or 'not named'}")
    return (Span("SIMULATED" if wanted.stand_in is not None else "LIVE", Tone.WARN),
            Span(f"  request {max(1, requests):,}{most} · {seconds:.0f} s · {count_of(chars, 'character')} · "),
            *hint("esc stops it"), safe(f" · turn {wanted.turn + 1:,} asks {whom}", Tone.DIM))


class LiveAttempt(SessionPart):
    """Makes one live run at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("A", "give_up", "cancel", tooltip="Cancel the live run that is under way", id="live.cancel"),
    ]

    def __init__(self, stage: SessionStage, show_run: Callable[[int], None]) -> None:
        """`show_run` shows the run with an index."""
        super().__init__(stage)
        self._show_run = show_run
        self._asking: BranchRun | None = None
        self._progress = RunUnderWay()
        self._began = 0.0

    @property
    def under_way(self) -> bool:
        """Whether a live run is active."""
        return self._asking is not None

    def ask(self, assignments: dict[str, str], since: int | None) -> None:
        """Shows the cost of sending this turn live, and sends it if the operator confirms."""
        from inspector.live.branch_request import branch_request

        if self._asking is not None:
            self.stage.note = "a live run is under way: esc stops it"
            return
        node, replay = self.stage.runs.node, self.stage.run.view.replay
        turn = replay.turn_at(self.stage.step)
        first = replay.turns[turn].first if since is None else since
        settings = settings_asked(assignments, replay.settings)

        def live(base: str, model: str) -> BranchRequest:
            return branch_request(replay, settings, first, os.environ, base=base, model=model or None)

        def play() -> BranchRequest:
            from inspector.live.scripted import stand_in_request

            return stand_in_request(replay, settings, first, os.environ)

        title = f"Ask turn {turn + 1:,} live again, from step {first + 1:,} on"
        self.stage.app.push_screen(AskLive(title, live, play), lambda found: self._begin(found, node, settings, first))

    def _begin(self, request: BranchRequest | None, node: Node, settings: Settings, since: int) -> None:
        if request is None:
            self.stage.note = "nothing was sent"
            return
        from inspector.live.branch_run import BranchRun, new_name

        name, runs = new_name(by_stand_in=request.stand_in is not None), self.stage.runs
        settings = replace(settings, live=name)
        folder = data_folder(os.environ) if runs.store is None else runs.store.folder
        self._asking = BranchRun(request, name, folder)
        # Saved before the request is sent, so that a crash does not lose an answer that was paid for.
        runs.begin(node, settings, since)
        self._ticking = self.stage.set_interval(PROGRESS_PERIOD, self._show_progress)
        self.stage.refresh_bindings()
        self.stage.note = ""
        self._progress, self._began = RunUnderWay(), monotonic()
        self._show_progress()
        self.stage.mount(self._progress, before="#body")
        # After the first frame with the line, because the client takes a while to load.
        asking = self._asking
        self.stage.call_after_refresh(
            lambda: self.stage.run_worker(self._wait(asking, node, settings, since), group="live"))

    def action_give_up(self) -> None:
        """Gives up the live run; responses received so far are kept."""
        if self._asking is not None:
            self._asking.cancel()

    def close_open(self) -> bool:
        """Gives up the live run; returns whether there was one."""
        self.action_give_up()
        return self.under_way

    def _show_progress(self) -> None:
        if self._asking is not None:
            requests, chars = self._asking.progress()
            self._progress.lines = [progress_line(self._asking.wanted, requests, chars, monotonic() - self._began)]

    async def _wait(self, asking: BranchRun, node: Node, settings: Settings, since: int) -> None:
        """Waits for the run, and shows its branch unless the operator has gone elsewhere in the meantime."""
        runs = self.stage.runs
        try:
            answers, failure = await asking.run()
            index = runs.join_live(node, settings, since, answers)
        except LoopError as why:
            runs.forget(node, settings, since)
            self._end(one_line(str(why)))
            return
        # An operator who reads another run gets a note instead of a change of the run. Runs are compared by key,
        # because loading the saved branches makes new nodes.
        if runs.node.key == node.key and self.stage.app.screen is self.stage:
            self._end("")
            self._show_run(index)
        else:
            self._end(f"run {runs.every[index].name} is over · o goes between runs")
        if failure:
            self.stage.note = one_line(failure)

    def _end(self, text: str) -> None:
        self._asking = None
        self._ticking.stop()
        self._progress.remove()
        self.stage.refresh_bindings()
        self.stage.note = text
