"""Takes the terminal's wishes and the user's recent files out of every test."""

import asyncio
import gc
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import textual.app
from textual import events
from textual._compositor import Compositor
from textual.app import App, active_app
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.keys import _character_to_key
from textual.widgets import Input

from inspector.tui import forget_drawn_widgets
from inspector.tui.session_files import OpenSession


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME", "COLORFGBG", "COLUMNS", "LINES", "TERM_PROGRAM", "STY", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("LOOP_INSPECTOR_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # nobody's own transcripts are read by a test
    for kind in ("CACHE", "CONFIG", "DATA", "STATE"):  # these come before the home folder
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("inspector.tui.session_files.state_folder", lambda: tmp_path / "state")


@pytest.fixture(autouse=True)
def _collect_apps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Apps are collected once they have ended. An app exempts what lives as long as its process, and here many apps
    share one: 1 MB of each was never freed."""
    monkeypatch.setattr(gc, "freeze", lambda: None)
    yield
    forget_drawn_widgets()


@pytest.fixture(autouse=True)
def _typing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are pressed when the screen can be seen, and not while the app begins. Characters for a field come as fast
    as a terminal sends them; the app is waited for once behind the last.

    Textual's pilot waits 40 ms or more behind every key: 5 s for a path of 80 characters.
    """
    one_by_one = App._press_keys

    async def press(self: App[object], keys: Iterable[str]) -> None:
        waiting = list(keys)
        while getattr(self, "_seen", ()) is None and self.is_running:
            await asyncio.sleep(0.001)
            draws(self)
        while waiting:
            characters = list(takewhile(lambda key: len(key) == 1, waiting)) if isinstance(self.focused, Input) else []
            for key in characters[:-1]:
                self._driver.send_message(events.Key(_character_to_key(key), key))
            now = max(len(characters), 1)
            await one_by_one(self, waiting[now - 1 : now])
            del waiting[:now]

    monkeypatch.setattr(App, "_press_keys", press)


def runs(app: App[object]) -> bool:
    """Whether one of its workers has more to do."""
    return any(worker.is_running for worker in app.workers)


def draws(app: App[object]) -> bool:
    """Draws what the screen has to draw, without its timers; False if there is nothing."""
    if not app.screen_stack:
        return False
    if app._resize_event is not None:
        app._check_resize()
        return True
    screen = app.screen
    can = screen.is_current and not app._batch_count
    waits = bool(screen._callbacks or (can and (
        screen._layout_required or screen._scroll_required or screen._repaint_required or screen._recompose_required
        or screen._dirty_widgets)))
    if waits:
        screen._on_timer_update()
    return waits


draw_update = Compositor.render_update
"""Draws for the terminal what changed since the last time, or everything."""


@pytest.fixture(autouse=True)
def _drawn_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen is drawn once behind each key, when the app is idle, and not at each refresh on the way there.

    Without a terminal, too, Textual draws each refresh, and throws it away: a third of the time of these tests.
    """

    def draw_pictures_only(self: Compositor, full: bool = False, *rest: Any, **more: Any) -> Any:
        return draw_update(self, full, *rest, **more) if full else None  # pictures are drawn with `full`

    monkeypatch.setattr(Compositor, "render_update", draw_pictures_only)


@pytest.fixture(autouse=True)
def _idle_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind each key, the app is waited for until it has nothing left to do, and no longer.

    Textual waits 20 ms twice behind every key, and on while its process takes more than a twentieth of the processor.
    It still does where a thread has more to do than can be waited for: most threads are done in a tenth of that.
    """
    by_processor, waiting = textual.app.wait_for_idle, 0

    async def idle(*seconds: float) -> None:
        app, loop = active_app.get(), asyncio.get_running_loop()
        patience = loop.time() + 0.02
        while runs(app) and loop.time() < patience:
            await asyncio.sleep(0.001)
        if runs(app):
            await by_processor(*seconds)
        nonlocal waiting
        waiting += 1  # two of them at once, as a worker may ask for, would keep each other busy for ever
        try:
            while len(loop._ready) >= waiting or draws(app):  # type: ignore[attr-defined]
                await asyncio.sleep(0)
        finally:
            waiting -= 1
        if app.screen_stack:
            draw_update(app.screen._compositor, screen_stack=app._background_screens)

    monkeypatch.setattr("textual.app.wait_for_idle", idle)
    monkeypatch.setattr("textual.pilot.wait_for_idle", idle)


read_rules = Stylesheet._parse_rules
"""Reads one sheet under the colours of a theme."""
rules_read: dict[Any, list[RuleSet]] = {}
"""What was read once in this process: rules are never changed, an app only copies from them."""


@pytest.fixture(autouse=True)
def _rules_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of each widget are read once in a theme, and not again by every app: an eighth of the time."""

    def read(self: Stylesheet, *sheet: Any, **more: Any) -> list[RuleSet]:
        key = (*sheet, *more.items(), tuple(self._variables.items()))
        if key not in rules_read:
            rules_read[key] = read_rules(self, *sheet, **more)
        return rules_read[key]

    monkeypatch.setattr(Stylesheet, "_parse_rules", read)


sessions: dict[str, OpenSession] = {}
"""Entries as JSON -> the session that was loaded from a file of them. A session never changes."""


@pytest.fixture
def app_on(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., object]:
    """The app on a file of entries, opened as the command line does it, at the first step. The same entries are written
    and loaded once in a process."""
    from inspector.tui.app import LoopInspector
    from inspector.tui.session_files import ReadingOptions, ScreenPlace, load
    from tests.scenes.app import story

    def make_app(entries: list | None = None, **options: object) -> LoopInspector:
        key = json.dumps(entries)
        if key not in sessions:
            sessions[key] = load([str(story(tmp_path_factory.mktemp("story"), entries))], ReadingOptions())
        session = sessions[key]
        options = {"begins": ScreenPlace(session.paths), **options}
        return LoopInspector(list(session.paths), opened_already=session, **options)

    return make_app
