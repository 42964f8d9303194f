"""How the app starts and ends: without colour, in ASCII, in a dumb terminal, on bad input, on large files."""

import gc
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter
from textual.widgets import Input

from inspector.commands.sessions import view_command
from inspector.report import turn_rows
from inspector.report.turn_rows import TurnRow
from inspector.sessions import intake
from inspector.sessions.open import open_beginning
from inspector.tui import launch as entry
from inspector.tui import session_files
from inspector.tui.app import LoadingScreen, LoopInspector
from inspector.tui.paint import DARK, LIGHT
from inspector.tui.session_screen import SessionScreen
from inspector.tui.tuning_screen import TuneScreen
from inspector.tui.turn_list import TurnList
from inspector.tui.turns_screen import TurnsScreen
from loop_core.errors import CallerError
from tests.scenes.app import cut_text, har, page, screen_rows, story, until, view_text
from tests.scenes.recordings import chat, lines, pair_of, user
from tests.scenes.transcripts import block, claude, prompt, text

AppOn = Callable[..., LoopInspector]
ROOT = Path(__file__).resolve().parents[2]

SAMPLE = "sample_sessions/01-cut-call-and-long-answer.session.jsonl"
FIRST_FRAME = """
import asyncio, sys
from inspector.tui.app import LoopInspector
from inspector.tui.session_files import ReadingOptions, load
app = LoopInspector(sys.argv[1:], opened_already=load(sys.argv[1:], ReadingOptions()))
async def main():
    async with app.run_test(size=(120, 40)):
        assert "step 22/" in "".join(strip.text for strip in app.screen._compositor.render_strips())
asyncio.run(main())
print("\\n".join(sys.modules))
"""


def test_the_first_frame_imports_nothing_slow(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_FRAME, str(story(tmp_path))], capture_output=True, text=True,
                          cwd=ROOT, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert "inspector.tui.session_screen" in loaded
    slow = {"pydantic", "httpx", "aiohttp", "yaml", "tree_sitter", "jsonschema_rs"}
    widgets = {f"textual.widgets._{name}" for name in ("data_table", "text_area", "markdown", "footer", "rich_log")}
    later = {f"inspector.tui.{name}" for name in (
        "limits_form", "questions", "turns_screen", "turns_reading", "policies_screen", "providers_screen",
        "tuning_screen")}
    assert loaded & (slow | widgets | later) == set()


async def test_keys_struck_while_a_large_file_is_read_are_silent(app_on: AppOn) -> None:
    app = app_on()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(LoadingScreen(["large.har"]))
        await pilot.press("k", "e", "W", "d")
        await pilot.pause()
        assert "q leaves" in page(app)
        assert not app._notifications, "not a message for each"


async def test_without_colour_every_state_keeps_its_word_and_the_cursor_is_told_apart(
    app_on: AppOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with app_on().run_test(size=(160, 45)) as pilot:
        await pilot.press("space", "space")
        rows = [row[:6] for row in screen_rows(pilot.app)[4:9]]
        assert rows == [" │  1 ", " │  2 ", " ▶  3 ", " ┆  4 ", " ┆  5 "]
        await pilot.press("]", "space", "4")
        strips = pilot.app.screen._compositor.render_strips()
        filters = [each for each in pilot.app._filters if each.enabled]
        painted = [segment for strip in strips for segment in _apply(list(strip), filters)]
        colours = [colour for segment in painted if segment.style
                   for colour in (segment.style.color, segment.style.bgcolor) if colour is not None and colour.triplet]
        assert colours
        assert all(len({colour.triplet.red, colour.triplet.green, colour.triplet.blue}) == 1 for colour in colours)
        shown = page(pilot.app)
        for word in ("✖ CUT CALL RUN", "▣ HELD", "▶ 22", "max_tokens", "RECORDED"):
            assert word in shown


def _apply(segments: list[Segment], filters: list[LineFilter]) -> list[Segment]:
    for each in filters:
        segments = each.apply(segments, Color(0, 0, 0))
    return segments


async def test_ascii_is_ascii_in_every_view(app_on: AppOn) -> None:
    entries = cut_text(("naïve — “text” with 漢字 and ✂ ", "the end."))
    sizes = [(80, 24), (160, 45)]
    async with app_on(entries, plain=True).run_test(size=sizes[0]) as pilot:
        for key in (*"12345678", *(key for opens in "e/:fxRbVdW" for key in (opens, "escape")), "?"):
            await pilot.press(key)
            for size in sizes if key != "escape" else sizes[:1]:
                await pilot.resize_terminal(*size)
                await pilot.pause()
                assert [row for row in screen_rows(pilot.app) if not row.isascii()] == [], (key, size)
            sizes = sizes if key == "escape" else sizes[::-1]  # the next is opened at the other size
            if key.isdecimal():
                await pilot.press("space")


ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|x[0-9a-f]{2})")
"""Matches a character that has no sign in ASCII."""


async def test_ascii_has_a_sign_for_each_of_the_programs_own() -> None:
    """The hints said `\\u2191 \\u2193 fields`, and `q back` had no room beside `\\u2423 step`."""
    app = LoopInspector([SAMPLE], plain=True)
    async with app.run_test(size=(80, 24)) as pilot:
        for keys, said in ((("s", "enter"), "verdict^"), (("s", "enter", "L"), "up down fields - < > words"),
                           (("escape", "question_mark"), "up, k"), (("escape", "enter"), "space step"),
                           (("exclamation_mark", "F", "R", "d"),
                            "ends as     retry_limit (AbortPartial) ! Complete")):
            for key in keys:
                await pilot.press(key)
                await app.workers.wait_for_complete()
                await pilot.pause()
            assert said in page(app), keys
            assert [row for row in screen_rows(app) if ESCAPED.search(row)] == []


async def test_the_table_of_turns_is_ascii_too() -> None:
    app = LoopInspector(plain=True)
    async with app.run_test(size=(80, 24)):
        assert [row for row in screen_rows(app) if not row.isascii()] == []


async def test_ascii_loses_no_character_of_a_text(app_on: AppOn) -> None:
    async with app_on(cut_text(("é" * 300,)), plain=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("space")
        assert "é" * 300 in view_text(pilot.app)
        await pilot.press("z")
        assert page(pilot.app).count("\\xe9") == 300


@pytest.mark.parametrize(("value", "theme"), [("15;0", DARK), ("0;15", LIGHT), ("", DARK), ("0;default;15", LIGHT)])
def test_the_theme_follows_the_terminal(monkeypatch: pytest.MonkeyPatch, value: str, theme: str) -> None:
    monkeypatch.setenv("COLORFGBG", value)
    assert LoopInspector().theme == theme


# -- the entry -------------------------------------------------------------------------------------------------------


def test_a_thread_that_reads_hands_over_in_time_for_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    seen_within: list[float] = []
    monkeypatch.setattr(entry, "_run", lambda *given: seen_within.append(sys.getswitchinterval()) or ((), 0))
    usual = sys.getswitchinterval()
    assert entry.run([]) == ((), 0)
    assert seen_within == [pytest.approx(entry.SLICE)]
    assert sys.getswitchinterval() == usual


@pytest.mark.skipif(sys.platform != "linux", reason="the terminal of the tests is Linux's")
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_dumb_terminal_gets_the_linear_report(tmp_path: Path, encoding: str) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    path = story(tmp_path).rename(tmp_path / f"{key}.session.jsonl")
    code, written = in_terminal([str(path)], TERM="dumb", PYTHONIOENCODING=encoding)
    assert code == 0
    assert "this terminal cannot show screens: here is the report" in written
    assert "CUT CALL RUN" in written
    assert "\x1b" not in written
    assert key not in written


@pytest.mark.parametrize(("encoding", "plain"), [("utf-8", False), ("UTF8", False), ("latin-1", True), ("ascii", True)])
def test_a_terminal_that_is_not_utf_8_is_drawn_in_ascii(
    encoding: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []

    class Drawn(LoopInspector):
        def __init__(self, *given: object, **more: object) -> None:
            super().__init__(*given, **more)  # type: ignore[arg-type]
            made.append(bool(more["plain"]))

        def run(self, **_more: object) -> None:
            """Draws nothing."""

    monkeypatch.setattr(entry, "LoopInspector", Drawn)
    monkeypatch.setattr(entry, "_has_keyboard", lambda: True)
    monkeypatch.setattr(sys, "__stderr__", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    entry.run(["sample_sessions/08-router-says-tool-calls.session.jsonl"])
    assert made == [plain]


@pytest.mark.skipif(sys.platform != "linux", reason="the terminal of the tests is Linux's")
def test_a_dumb_terminal_without_a_path_names_the_newest_sessions_and_the_samples(tmp_path: Path) -> None:
    """It named the samples alone, where the app lists the operator's own sessions first."""
    place = tmp_path / "home" / ".claude" / "projects" / "p"
    place.mkdir(parents=True)
    for at in range(25):
        path = place / f"s{at:02}.jsonl"
        path.write_text("{}\n" * 2)
        os.utime(path, (at, at))
    code, written = in_terminal([], TERM="dumb")
    assert code == 0
    assert f"{place}/s24.jsonl  Claude Code" in written
    assert "s05.jsonl" in written
    assert "s04.jsonl" not in written, "20 are enough to begin with"
    assert "the newest 20 of 25 sessions" in written
    assert written.index("s24.jsonl") < written.index("s05.jsonl") < written.index("sample_sessions")


@pytest.mark.skipif(sys.platform != "linux", reason="the terminal of the tests is Linux's")
def test_a_live_turn_by_hand_is_refused_in_a_dumb_terminal() -> None:
    words = ["run", "--api", "openai_chat", "--model", "m", "--base-url", "http://127.0.0.1:9", "--prompt", "x",
             "--step"]
    code, written = in_terminal(words, TERM="dumb")
    assert code == 2
    assert "--step needs a terminal" in written


@pytest.mark.parametrize(("words", "output", "code", "error"), [
    ("", ">&-", 2, "inspector: standard output: it is closed\n"),
    ("", "2>&-", 0, ""),
    ("", ">/dev/full", 2, "inspector: standard output: No space left on device\n"),
    ("sample:08", ">&-", 2, "inspector view: the app needs a terminal; `inspector explain` gives the same as text\n"),
])
def test_an_output_that_takes_nothing_is_no_traceback(words: str, output: str, code: int, error: str) -> None:
    ran = subprocess.run(["sh", "-c", f"{sys.executable} -m inspector view {words} 2>&1 </dev/null {output}"],
                         check=False, capture_output=True, text=True)
    assert ran.returncode == code
    assert ran.stdout.endswith(error)
    assert "Traceback" not in ran.stdout


def test_a_signal_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    environment = {**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-m", "inspector", "view", str(story(tmp_path))], env=environment,
                               stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    shown = b""
    while b"CUT CALL RUN" not in shown:
        shown += os.read(ours, 1 << 16)
    process.terminate()
    while b"\x1b[?1049l" not in shown:  # the end of the alternate screen
        assert process.poll() is None or select.select([ours], [], [], 0)[0]
        shown += os.read(ours, 1 << 16) if select.select([ours], [], [], 0.1)[0] else b""
    assert process.wait() == 128 + signal.SIGTERM
    shown += os.read(ours, 1 << 16) if select.select([ours], [], [], 0)[0] else b""
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l")  # the cursor is shown
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    os.close(ours)


def test_the_program_ends_with_its_terminal_also_without_a_signal(tmp_path: Path) -> None:
    ours, theirs = os.openpty()  # not the controlling terminal, so that the kernel sends no SIGHUP
    environment = {**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-m", "inspector", "view", str(story(tmp_path))], env=environment,
                               stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown = b""
    while b"CUT CALL RUN" not in shown:
        shown += os.read(ours, 1 << 16)
    os.close(ours)
    try:
        assert process.wait(20) == 128 + signal.SIGHUP
    finally:
        process.kill()


def in_terminal(words: Sequence[str], **environment: str) -> tuple[int, str]:
    """The exit code of the program in a terminal, and all that it wrote there."""
    import pty

    ours, terminal = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "inspector", *words], cwd=ROOT, env={**os.environ, **environment},
                          stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True) as process:
        os.close(terminal)
        written = b""
        with suppress(OSError), open(ours, "rb", buffering=0) as output:  # on Linux the end of a terminal is an error
            while piece := output.read(65_536):
                written += piece
    return process.returncode, written.decode()


BAD = {
    "empty": (b"", "empty"),
    "rubbish": (bytes(range(256)) * 4, "binary data"),
    "utf16": ("{}".encode("utf-16"), "UTF-16"),
    "line": (b"x" * 100_000, "longer than"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    data, said = BAD[name]
    path = tmp_path / name
    path.write_bytes(data)
    monkeypatch.setattr("inspector.commands.has_terminal", lambda: True)
    result = CliRunner().invoke(view_command, [str(path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.strip().split("\n")) == 1
    assert str(path) in result.stderr
    assert said in result.stderr


async def test_what_was_read_of_a_cut_file_is_shown_and_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.har"
    path.write_text(har(cut_text())[:-400])
    read = session_files.load([str(path)], session_files.ReadingOptions())
    assert read.errors
    app = LoopInspector([str(path)], opened_already=read)
    async with app.run_test(size=(160, 45)):
        assert "turn 1" in page(app)
        assert "cut.har: " in page(app)
    assert app.errors == read.errors


async def test_a_large_file_is_read_behind_a_screen_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = story(tmp_path)
    monkeypatch.setattr(intake, "HEAVY", 10)
    monkeypatch.setattr("inspector.tui.app.remember", lambda paths: None)
    app = LoopInspector([str(path)])
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(app.screen, TurnsScreen)
        assert "CUT CALL RUN" in page(app)
        await pilot.press("enter")
        assert isinstance(app.screen, SessionScreen)
        await pilot.press("q", "q")
    assert app.return_value == 0


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Every file is large, and is read once this is set."""
    released = threading.Event()
    monkeypatch.setattr(intake, "HEAVY", 10)
    monkeypatch.setattr("inspector.tui.app.remember", lambda paths: None)
    monkeypatch.setattr("inspector.tui.app.load", lambda *given: (released.wait(20), session_files.load(*given))[1])
    return released


async def test_keys_struck_while_a_large_file_is_read_act_on_its_table(tmp_path: Path, slow: threading.Event) -> None:
    app = LoopInspector([str(story(tmp_path))], as_table=True)
    async with app.run_test(size=(80, 24)) as pilot:
        assert isinstance(app.screen, LoadingScreen)
        await pilot.press("j", "enter", "4")
        assert isinstance(app.screen, LoadingScreen)
        slow.set()
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.panes.tab == "calls")
        assert app.screen.run.view.number(app.screen.run.view.turn_of(app.screen.step)) == 1, "the second row"


async def test_keys_struck_while_a_file_is_opened_wait_for_it_and_esc_gives_it_up(
    tmp_path: Path, slow: threading.Event
) -> None:
    path = str(story(tmp_path))
    app = LoopInspector()
    async with app.run_test(size=(80, 24)) as pilot:
        home = app.screen
        await pilot.press("o", *path, "enter", "enter")
        await until(pilot, lambda: "keys wait for it · esc gives up" in " ".join(page(app).split()))
        await pilot.press("escape")
        assert "given up: the file is not opened" in page(app)
        slow.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.screen is home, "neither the file nor the keys behind it"
        slow.clear()
        await pilot.press("o", *path, "enter", "enter")
        slow.set()
        await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        await pilot.press("q", "q")
        assert app.screen is home


async def test_a_large_file_that_is_none_ends_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "none.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {}, "entries": []}}))
    app = LoopInspector([str(path)])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.return_value is not None)
    assert app.return_value == 2
    assert app.errors


async def test_the_fields_of_the_form_do_not_blink(app_on: AppOn) -> None:
    async with app_on().run_test(size=(80, 24)) as pilot:
        await pilot.press("e")
        assert all(not field.cursor_blink for field in pilot.app.screen.query(Input))
        await pilot.press("escape", "/")
        assert all(not field.cursor_blink for field in pilot.app.screen.query(Input))


async def test_a_theme_that_was_chosen_is_there_the_next_time(app_on: AppOn) -> None:
    app = app_on()
    async with app.run_test() as pilot:
        await pilot.press("t")
        chosen = app.theme
    again = app_on()
    async with again.run_test():
        assert again.theme == chosen
        assert again.paint.cursor == app.paint.cursor
    named = app_on(theme="nord")
    async with named.run_test():
        assert named.theme == "nord"


async def test_a_theme_that_is_gone_is_no_reason_to_fail(app_on: AppOn) -> None:
    from inspector.tui.session_files import keep_state

    keep_state("theme", b"no-such-theme")
    app = app_on()
    async with app.run_test():
        assert app.theme == "inspector-dark"


# -- the first turns of a large file -----------------------------------------------------------------------------------


def turns(count: int) -> str:
    """A transcript of so many turns, each with a word of its own."""
    rows = [row for number in range(count)
            for row in (prompt(f"question {number}"), block(text(f"answer {number}"), f"msg_{number}", "end_turn"))]
    return claude(*rows)


@pytest.mark.parametrize(("size", "most"), [(1, 75), (100, 75), (3_000, 22)])
def test_of_a_large_file_a_screenful_is_read_or_as_much_as_one_frame_allows(
    tmp_path: Path, size: int, most: int
) -> None:
    path = tmp_path / "large.jsonl"
    path.write_bytes(lines(*(pair_of([user("question" * size)], chat("An answer.")) for _ in range(300))))
    read = session_files.load_beginning([str(path)], session_files.ReadingOptions())
    assert read is not None
    enough = min(session_files.SCREENFUL, session_files.BEGINNING // (path.stat().st_size // 300 + 1))
    assert 0.9 * enough <= len(read.original.view.turns) <= most


def test_of_a_file_with_long_turns_more_is_read_until_it_holds_a_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.jsonl"
    path.write_text(turns(12))
    one_turn = path.stat().st_size // 12
    monkeypatch.setattr(session_files, "BEGINNING", one_turn + 10)
    read = session_files.load_beginning([str(path)], session_files.ReadingOptions())
    assert read is not None
    assert len(read.original.view.turns) == 4, "four times as many bytes as hold one turn"
    monkeypatch.setattr(session_files, "FURTHEST", one_turn + 10)
    assert session_files.load_beginning([str(path)], session_files.ReadingOptions()) is None


async def test_of_a_large_transcript_the_first_turns_are_listed_before_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.jsonl"
    path.write_text(turns(12))
    monkeypatch.setattr(intake, "HEAVY", 10)
    monkeypatch.setattr(session_files, "BEGINNING", path.stat().st_size // 2)
    monkeypatch.setattr("inspector.tui.app.remember", lambda paths: None)
    waits = threading.Event()
    monkeypatch.setattr("inspector.tui.turns_reading.load",
                        lambda *given: (waits.wait(20), session_files.load(*given))[1])
    measured, widest = [], TurnList.widest_of

    def measure(listed: TurnList, rows: list[TurnRow]) -> dict[str, int]:
        measured.append((len(rows), threading.current_thread() is threading.main_thread()))
        return widest(listed, rows)

    collected: list[bool] = []
    make = turn_rows.rows_of
    monkeypatch.setattr(turn_rows, "rows_of", lambda *given: collected.append(gc.isenabled()) or make(*given))

    monkeypatch.setattr(TurnList, "widest_of", measure)
    app = LoopInspector([str(path)], as_table=True)
    async with app.run_test(size=(120, 24)) as pilot:
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, TurnsScreen)
        listed = [row.title for row in screen.turn_list.rows]
        assert 2 < len(listed) < 7
        assert listed == [f"question {number}" for number in range(len(listed))]
        assert re.search(rf"reading 0 MB.*\u2026 so far \u00b7 {len(listed)} turns in 1 session", page(app))
        assert not any(row.of for row in screen.turn_list.rows), "how many turns there are is not known yet"
        await pilot.press("enter")
        shown = " ".join(page(app).split())
        assert "large.jsonl, only its beginning" in shown
        assert "turns of this file have been read: q, then enter when the table has all" in shown
        for view in "up":
            await pilot.press(view)
            await until(pilot, lambda: "original, only the beginning" in page(app))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, SessionScreen))
        await pilot.press("q", "u")
        assert isinstance(app.screen, TurnsScreen)
        assert "still being read; tune opens after that · esc gives up" in page(app)
        await pilot.press("escape")
        assert "given up: the view over all files is not opened" in page(app)
        assert not screen.waiting_view
        await pilot.press("u")
        waits.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert [row.title for row in screen.turn_list.rows] == [f"question {number}" for number in range(12)]
        assert collected
        assert not any(collected), "no object is searched for cycles while the rows of 100,000 turns are made"
        assert measured[-1] == (12, False), "of 100,000 rows it takes a third of a second"
        await until(pilot, lambda: isinstance(app.screen, TuneScreen) and not app.screen.running)
        await pilot.press("escape")
        assert app.screen is screen
        assert "reading" not in page(app)
        assert {row.of for row in screen.turn_list.rows} == {12}
        await pilot.press("enter")
        assert isinstance(app.screen, SessionScreen)
        assert "only its beginning" not in page(app)


def test_the_whole_lines_of_a_beginning_are_a_session(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(turns(3))
    whole = open_beginning(str(path), 1 << 20)
    assert whole is not None
    assert len(whole.exchanges) == 3
    cut = open_beginning(str(path), path.stat().st_size - 5)
    assert cut is not None
    assert (len(cut.exchanges), cut.inputs[0].notices) == (2, whole.inputs[0].notices)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_bytes(lines(*(pair_of([user(f"question {number}")], chat("An answer.")) for number in range(3))))
    begun = open_beginning(str(pairs), pairs.stat().st_size - 5)
    assert begun is not None
    assert (len(begun.exchanges), begun.inputs[0].notices, begun.inputs[0].skipped) == (2, (), ())
    listed = tmp_path / "pairs.json"
    listed.write_text(json.dumps([json.loads(line) for line in pairs.read_text().splitlines()], indent=1))
    assert open_beginning(str(listed), 1 << 20) is None, "of a list the beginning is no list"
    bodies = tmp_path / "bodies.jsonl"
    bodies.write_bytes(lines(*(chat("An answer.") | {"id": f"c{number}"} for number in range(3))))
    begun = open_beginning(str(bodies), bodies.stat().st_size - 5)
    assert begun is not None
    assert (begun.inputs[0].format, len(begun.exchanges), begun.inputs[0].error) == ("body", 2, None)
    assert open_beginning(str(tmp_path / "none"), 1 << 20) is None


@pytest.mark.skipif(sys.platform != "linux", reason="the terminal of the tests is Linux's")
@pytest.mark.parametrize("redirected", ["</dev/null", "<&-"])
def test_keys_come_from_the_terminal_where_standard_input_is_none(redirected: str) -> None:
    from tests.benchmarks.terminal import Terminal

    line = f'"$0" -m inspector view sample:02 {redirected}; echo ENDED $?'
    with Terminal(["sh", "-c", line, sys.executable], str(ROOT)) as terminal:
        terminal.wait_for("CUT, COMPLETED")
        terminal.settle()
        terminal.press("q", 1)
        terminal.wait_for("ENDED 0", seconds=20)


def test_without_a_terminal_for_keys_the_app_does_not_open() -> None:
    made = ("import sys; sys.stdout.isatty = lambda: True\nfrom inspector.cli import run\n"
            "sys.argv = ['inspector', 'sample_sessions/02-text-cut-twice.session.jsonl']\nrun()")
    done = subprocess.run([sys.executable, "-c", made], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False, cwd=ROOT, start_new_session=True,
                          env={**os.environ, "TERM": "xterm"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"inspector: {entry.NO_KEYBOARD}\n"


@pytest.mark.parametrize("named", [{"api": "nobody"}, {"profile": "nobody"}])
@pytest.mark.parametrize("paths", [[], ["sample_sessions"]])
def test_a_name_that_does_not_exist_is_refused_before_the_app_opens(named: dict[str, str], paths: list[str]) -> None:
    with pytest.raises(CallerError, match=r"unknown (API|profile) 'nobody'; expected one of "):
        entry.run(paths, **named)


@pytest.mark.parametrize(("variable", "value", "expected"), [
    *(("TEXTUAL_DRIVER", value, "expected a driver of Textual as MODULE:CLASS")
      for value in ("", "nope", "os:path", "textual.driver:Driver")),
    ("TEXTUAL_COLOR_SYSTEM", "nope", "expected auto, standard")])
def test_a_variable_of_textual_without_a_valid_value_is_told(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str,
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(CallerError, match=f"^{variable}={value}: {expected}"):
        entry.run([])
