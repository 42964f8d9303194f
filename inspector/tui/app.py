"""The Textual app: its screens, its theme, the keys of every screen, and the screen while a large file is read."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import Theme
from textual.types import CSSPathType

from inspector.report.lines.spans import Tone, one_line
from inspector.report.verdict import SAME
from inspector.sessions import exempt_from_collector, redact
from inspector.sessions.intake import heavy
from inspector.tui import forget_drawn_widgets
from inspector.tui.base_app import KeysInOrderApp
from inspector.tui.keys import HelpScreen, KeyCommands
from inspector.tui.messages import (
    UNDER_WAY,
    ActionWanted,
    LiveWanted,
    NoteWanted,
    NotingScreen,
    PassingScreen,
    PathWanted,
    PlacedScreen,
    SessionWanted,
    TurnsRead,
    TurnWanted,
)
from inspector.tui.paint import DARK, LIGHT, THEMES, Paint, check_theme, own_colours, readable, with_contrast
from inspector.tui.panels import note
from inspector.tui.session_files import (
    OpenSession,
    ReadingOptions,
    ScreenPlace,
    keep_state,
    last_theme,
    load,
    load_beginning,
    remember,
)
from loop_core.errors import LoopError

if TYPE_CHECKING:
    from inspector.live.headless import LiveStart
    from inspector.live.scripted import ScriptedTurn
    from inspector.tui.session_screen import SessionScreen
    from inspector.whatif.turn_pair import TurnSide

UNREADABLE = 2
MOST_NAMED = 20
"""The number of unreadable files that are named one by one when the program ends; the others are only counted."""
PLAIN_CSS = """
.-plain #middle { border-left: ascii $border; }
.-plain #middle:focus-within { border-left: ascii $primary; }
.-plain SessionScreen.-narrow #middle, .-plain SessionScreen.-zoom-text #middle { border-left: none; }
.-plain #machine, .-plain #spent { border-left: ascii $border; }
.-plain #turns-about, .-plain #detail, .-plain #texts { border-top: ascii $border; }
.-plain Dialog > Vertical, .-plain Dialog > VerticalScroll { border: ascii $primary; }
.-plain #ask { border: ascii $warning; }
.-plain Dialog *, .-plain SideBySide * { scrollbar-size: 0 0; }
.-plain TuneScreen #answers, .-plain TuneScreen.-below #cell { border-top: ascii $border; }
.-plain TuneScreen.-beside #cell { border-left: ascii $border; }
.-plain #text, .-plain #steps, .-plain #turns { scrollbar-size: 0 0; }
.-plain CursorTable, .-plain #detail, .-plain #map, .-plain #answers, .-plain #cell { scrollbar-size: 0 0; }
"""
"""Styles for `--ascii`. They replace borders that Textual would draw with characters beyond ASCII."""
MANY_RESPONSES = 2_000
"""The number of responses in closed sessions from which a search frees their memory (10 kB or more for each)."""


class LoopInspector(KeysInOrderApp):
    """The debugger for agent turns."""

    TITLE = "Loop Inspector"
    CLICK_CHAIN_TIME_THRESHOLD: ClassVar[float] = 1.0  # Textual's 0.5 s is less than a calm second click takes
    CSS_PATH: ClassVar[CSSPathType | None] = "app.tcss"
    COMMANDS: ClassVar[set[type | Callable[[], type]]] = {KeyCommands, *App.COMMANDS}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "keys", "help", tooltip="Every key, by what it does", id="help"),
        # Also `:`, on screens without their own command line, because the letters after it would count as keys.
        Binding("ctrl+p,colon", "command_palette", "All commands", show=False, tooltip="All commands, by name",
                id="palette"),
        Binding("L", "live", "live turn", show=False, id="live",
                tooltip="A live turn: ask a provider or a local model, each effect by hand"),
        Binding("t", "theme", "Theme", show=False, tooltip="Light or dark", id="theme"),
    ]

    def __init__(
        self, paths: Sequence[str] = (), *, opened_already: OpenSession | None = None,
        reading: ReadingOptions | None = None, plain: bool = False, theme: str | None = None,
        keys: Mapping[str, str] | None = None, live: LiveStart | None = None, begins: ScreenPlace | None = None,
        as_table: bool = False,
    ) -> None:
        super().__init__()
        self.reading = reading or ReadingOptions()
        # An animated page scroll costs twenty times the CPU of a direct one.
        self.animation_level = "none"
        self.errors: tuple[str, ...] = ()
        """Messages about inputs that could not be read; the command line prints them when the app has ended."""
        self.opened_paths: tuple[str, ...] = ()
        """The paths on the command line, which join the recent files when they are shown."""
        self.turn_to_compare: TurnSide | None = None
        """The turn put aside for comparison with one of another session."""
        self._unsearched = 0
        """The responses of the sessions that were opened since the memory of closed ones was last freed."""
        self._paths = tuple(paths)
        self._live, self._begins = live, begins
        self._as_table = as_table
        """Whether a session of several turns opens on the table of its turns."""
        self._plain = plain
        self._start = opened_already
        if plain:
            self.add_class("-plain")
            self.stylesheet.add_source(PLAIN_CSS)
        for own in THEMES:
            self.register_theme(own)
        if keys:
            self.set_keymap(dict(keys))
        if theme is not None:
            check_theme(theme)
        if theme is not None or "TEXTUAL_THEME" not in os.environ:
            # Set without its watcher, which would compute all styles a second time before the first frame.
            self.set_reactive(App.theme, theme or self._theme_of_old())
            self.stylesheet.set_variables(self.get_css_variables())
            self._refresh_truecolor_filter(self.ansi_theme)
        self.paint = Paint(readable(self.current_theme, self.theme_variables), plain)

    def _theme_of_old(self) -> str:
        """The theme that the operator chose last; else light or dark by the terminal's background."""
        theme_name = last_theme()
        return theme_name if theme_name in self.available_themes else LIGHT if _light_terminal() else DARK

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Default values of the app's own colours, for themes that do not define them."""
        return own_colours(self.current_theme)

    def get_css_variables(self) -> dict[str, str]:
        """The colours of the theme, with the contrast that texts need."""
        self.theme_variables = with_contrast(self.current_theme, super().get_css_variables())
        return self.theme_variables

    def get_default_screen(self) -> Screen[Any]:
        """The session screen if a session is loaded; else the table of turns or the loading screen."""
        if self._live is not None:
            return self._live_screen(self._live)
        if self._start is not None:
            return self._table_or_session(self._start) if self._as_table else self._session(self._start)
        if self._paths and self._begins is None and (len(self._paths) > 1 or os.path.isdir(self._paths[0])):
            return self._table_of(self._paths)
        if self._paths:
            begun = self._open_beginning(self._paths) if heavy(self._paths) else None
            self.opened_paths = self._paths if begun is not None else ()
            return begun or LoadingScreen(self._paths)
        from inspector.tui.turn_counts import first_note
        from inspector.tui.turn_list import found_sections
        from inspector.tui.turns_screen import TurnsScreen

        screen = TurnsScreen(sections := found_sections(os.environ), named=False)
        screen.note = first_note(sections)
        return screen

    def on_mount(self) -> None:
        """Starts reading the inputs in the background, if they are large enough to take noticeable time."""
        self.theme_changed_signal.subscribe(self, self._repaint)
        if isinstance(self.screen, LoadingScreen):
            self._read_behind(self._paths, first=True)

    def on_ready(self) -> None:
        """Exempts all objects built before the first frame from garbage collection (`gc.freeze`)."""
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        remember(self.opened_paths)

    def _repaint(self, theme: Theme) -> None:
        keep_state("theme", theme.name.encode())
        self.paint = Paint(readable(theme, self.theme_variables), self._plain)
        for screen in self.screen_stack:
            for widget in screen.query("*"):
                widget.refresh()

    # -- live turns ----------------------------------------------------------------------------------------------

    def _live_screen(self, start: LiveStart | ScriptedTurn) -> Screen[Any]:
        from inspector.tui.live_screen import LiveScreen

        return LiveScreen(start)

    def action_live(self) -> None:
        """Opens the form for a live turn."""
        from inspector.tui.live_forms import LiveForm

        self.push_screen(LiveForm(self.reading.settings), self._begin)

    def action_providers(self) -> None:
        """Shows one intended answer in the dialect of every provider."""
        from inspector.tui.providers_screen import ProvidersScreen

        self.push_screen(ProvidersScreen(self.reading.settings))

    def _begin(self, start: LiveStart | ScriptedTurn | None) -> None:
        if start is not None:
            self.push_screen(self._live_screen(start))

    # -- opening -------------------------------------------------------------------------------------------------

    @on(PathWanted)
    def _path_wanted(self, message: PathWanted) -> None:
        if os.path.isdir(message.path):
            self.push_screen(self._table_of((message.path,)))
        else:
            self._open((message.path,), True)

    @on(TurnWanted)
    def _turn_wanted(self, message: TurnWanted) -> None:
        row = message.row
        place = ScreenPlace(row.paths, row.step, message.tab, message.action) if row.verdict is not None else None
        if message.session is not None:
            self._begins = place
            self._show(message.session, first=False, keep=message.remember, is_new=False)
        else:
            self._open(row.paths, message.remember, place)

    def _open(self, paths: Sequence[str], keep: bool, place: ScreenPlace | None = None) -> None:
        """Opens files at `place`, else on the table of their turns if there are several, else on the session."""
        self._begins = place
        try:
            if not heavy(paths):
                self._show(load(paths, self.reading), first=False, keep=keep)
            elif (begun := self._open_beginning(paths)) is not None:
                self.push_screen(begun)
                remember(paths if keep else ())
            else:
                self._read_behind(paths, first=False, keep=keep)
        except LoopError as why:
            self.tell(one_line(str(why)))

    @on(TurnsRead)
    def _turns_read(self, message: TurnsRead) -> None:
        self.errors = tuple([f"{row.file}: {row.why}" for row in message.unread
                             if row.file in self._paths and row.unread != SAME])
        if not message.any_turn and self._paths and len(self.screen_stack) == 1:
            every = [f"{row.file}: {row.why}" for row in message.unread]
            more = [f"and {len(every) - MOST_NAMED:,} files more"] if len(every) > MOST_NAMED else []
            self.errors = (*every[:MOST_NAMED], *more) or ("no LLM traffic was found",)
            self.exit(UNREADABLE)

    def _table_of(self, paths: Sequence[str]) -> Screen[Any]:
        from inspector.tui.turn_list import Section
        from inspector.tui.turns_screen import TurnsScreen

        return TurnsScreen([Section("", tuple(paths), remember=True)])

    def _table_or_session(self, read: OpenSession) -> Screen[Any]:
        """The screen for a session: the table of turns if there are several, else the session screen."""
        if self._begins is not None or self.reading.follow or len(read.original.view.turns) < 2:
            return self._session(read)
        from inspector.tui.turns_screen import TurnsScreen

        self.errors = read.errors
        return TurnsScreen(session=read)

    def _open_beginning(self, paths: Sequence[str]) -> Screen[Any] | None:
        """The table of the first turns of a large file, which reads the rest; None if it cannot be read in part."""
        if self._begins is not None or not self._as_table:
            return None
        read = load_beginning(paths, self.reading)
        if read is None:
            return None
        from inspector.tui.turns_screen import TurnsScreen

        return TurnsScreen(session=read, begun=True)

    @on(SessionWanted)
    def _session_wanted(self, message: SessionWanted) -> None:
        self._push(message.session, self._session)

    @on(LiveWanted)
    def _live_wanted(self, message: LiveWanted) -> None:
        self.push_screen(self._live_screen(message.turn))

    def _read_behind(self, paths: Sequence[str], *, first: bool, keep: bool = True) -> None:
        self.open_behind(paths)
        self._read(paths, first, keep)

    @work(thread=True, exclusive=True)
    def _read(self, paths: Sequence[str], first: bool, keep: bool) -> None:
        try:
            read = load(paths, self.reading)
        except LoopError as why:
            self.call_from_thread(self.arrive, paths, partial(self._report_failure, (str(why),), first), keys=False)
            return
        self.call_from_thread(self.arrive, paths, partial(self._show, read, first=first, keep=keep))

    def _report_failure(self, errors: tuple[str, ...], first: bool) -> None:
        if first:
            self.errors = errors
            self.exit(UNREADABLE)
        else:
            self.tell(one_line(errors[0]))

    def _show(self, read: OpenSession, *, first: bool, keep: bool, is_new: bool = True) -> None:
        if not read.original.view.steps:
            nothing = "no LLM traffic was found" if first else "no LLM traffic was found there"
            self._report_failure(read.errors or (nothing,), first)
            return
        if keep:
            remember(read.paths)
        self._push(read, self._table_or_session, is_new)

    def _push(self, read: OpenSession, screen: Callable[[OpenSession], Screen[Any]], is_new: bool = True) -> None:
        forget_drawn_widgets()
        if is_new:  # its table has exempted any other; decided by the responses, since counting objects takes 0.1 s
            search = self._unsearched > MANY_RESPONSES
            exempt_from_collector(search)
            self._unsearched = len(read.original.view.responses) + (0 if search else self._unsearched)
        self.push_screen(screen(read))

    def _session(self, read: OpenSession) -> SessionScreen:
        self.errors = read.errors
        begins, self._begins = self._begins, None
        from inspector.tui.session_screen import SessionScreen  # a table of turns is shown 20 ms sooner without it

        return SessionScreen(read, begins)

    @property
    def where(self) -> ScreenPlace | None:
        """The open session and the cursor's place in it; None if no session is open."""
        return next((screen.where for screen in reversed(self.screen_stack) if isinstance(screen, PlacedScreen)), None)

    # -- keys ----------------------------------------------------------------------------------------------------

    async def run_action(self, action: Any, *arguments: Any, **options: Any) -> bool:
        """Runs an action, after removing the note of the previous one."""
        if isinstance(self.screen, NotingScreen) and self.screen.note not in UNDER_WAY:
            self.tell(self.screen.note if str(action).startswith("app.command") else "")
        return await super().run_action(action, *arguments, **options)

    @on(NoteWanted)
    def _note_wanted(self, message: NoteWanted) -> None:
        if isinstance(self.screen, NotingScreen):
            self.tell(message.text)

    @on(ActionWanted)
    async def _action_wanted(self, message: ActionWanted) -> None:
        await self.run_action(message.action, message.node)

    def action_keys(self) -> None:
        """Shows all keys."""
        self.push_screen(HelpScreen(self.screen))

    def action_theme(self) -> None:
        """Switches between the light and the dark theme, and says where the others are."""
        self.theme = LIGHT if self.current_theme.dark else DARK
        self.tell(f"theme {self.theme} · ctrl+p, then Choose a theme, offers every theme")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The commands of the palette that have no key."""
        yield SystemCommand("Choose a theme", "All themes, by name", self.action_change_theme)
        if isinstance(screen, NotingScreen):
            later = partial(self.set_timer, 0.1, partial(self._save_picture, screen))  # when the palette is gone
            yield SystemCommand("Save a picture of the screen", "As SVG", later)

    def _save_picture(self, screen: Screen[Any]) -> None:
        from inspector.tui.delivery import deliver, picture

        files = {"loop-inspector-screen.svg": redact.text(picture(self))}
        deliver(screen, lambda: files, "the picture")


def _light_terminal() -> bool:
    """Whether the terminal's background is light, by the last number of COLORFGBG, which rxvt introduced."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


# -- The screen while a large file is read ---------------------------------------------------------------------------


class LoadingScreen(PassingScreen):
    """Shows which inputs are being read."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__()
        self._paths = paths

    def compose(self) -> ComposeResult:
        """One line per path."""
        yield note("Reading", Tone.TITLE)
        for path in self._paths[:20]:
            yield note(f"  {one_line(path)}", Tone.PLAIN)
        yield note("q leaves; other keys wait until it is read", Tone.DIM)
