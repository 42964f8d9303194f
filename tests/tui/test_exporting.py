"""Exports and copies from the app: what is written, where, and what a terminal that takes no copy is told."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from inspector.export import FORMS
from inspector.tui.app import LoopInspector
from inspector.tui.delivery import CLIPBOARD_REFUSALS, copy_refusal, write_files
from inspector.tui.lists import Choose
from inspector.tui.session_files import ReadingOptions, load
from inspector.tui.session_screen import VIEWS
from tests.scenes.app import assistant, body, choose_command, entry, page, until, user

AppOn = Callable[..., LoopInspector]
THREE = (160, 45)
SAMPLES = Path(__file__).parents[2] / "sample_sessions"


async def test_every_form_is_written_into_the_folder_that_is_named(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("]", "space")
        for at, form in enumerate([*FORMS, *VIEWS]):
            await pilot.press("x")
            assert isinstance(pilot.app.screen, Choose)
            await pilot.press(*["j"] * at, "enter", "backspace", *f"out-{form}", "enter")
            await pilot.pause()
            files = sorted((tmp_path / f"out-{form}").iterdir())
            assert len(files) == (2 if form in ("bug", "otlp") else 1), form
            wanted = "written, in a new folder: " + (f"{len(files)} files in " if len(files) > 1 else "")
            assert f"{wanted}./out-{form}" in page(pilot.app).replace(str(tmp_path), "."), "how many, and where"
            assert all(path.stat().st_size > 20 for path in files), form
            content = files[0].read_text("utf-8")
            if form == "svg":
                assert content.startswith("<svg")
                assert "EvaluateStop" in content
            if form == "view":
                assert "segment 1" in content


async def test_nothing_is_written_over(app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("]", "space", "X")
        place = tmp_path / "data" / "exports"
        first = sorted(path.name for path in place.glob("loop-inspector-*"))
        assert len(first) == 2
        await pilot.press("X")
        assert len(list(place.glob("loop-inspector-*"))) == 4
        assert len(list(place.glob("loop-inspector-*-2.md"))) == 1
        assert not list(tmp_path.glob("loop-inspector-*")), "the folder that the app was started in stays as it was"


@pytest.mark.parametrize("size", [(80, 24), THREE])
async def test_the_folder_is_named_as_a_whole_before_and_after_it_is_written(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    home, started_in = tmp_path / "home", tmp_path / "cwd"
    home.mkdir(exist_ok=True)
    started_in.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOOP_INSPECTOR_DATA", str(home / "data"))
    monkeypatch.chdir(started_in)
    async with app_on().run_test(size=size) as pilot:
        await pilot.press("]", "space", "x", *["j"] * [*FORMS].index("md"), "enter")
        assert "~/data/exports" in page(pilot.app)
        await pilot.press("enter")
        (path,) = (home / "data" / "exports").iterdir()
        assert f"written: ~/data/exports/{path.name}" in " ".join(page(pilot.app).split())
        assert (home / "data").stat().st_mode & 0o077 == 0, "nobody else reads the data folder"
        await pilot.press("x", *["j"] * [*FORMS].index("md"), "enter", "ctrl+u", ".", "enter")
        (path,) = started_in.iterdir()
        assert path.name in "".join(page(pilot.app).split()), "a path may be wrapped in the middle of a name"


async def test_a_path_without_a_parent_makes_no_folders(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = "mistyped/out"
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("]", "space", "x", "enter", "backspace", *place, "enter")
        assert "there is no folder mistyped" in page(pilot.app)
        assert not (tmp_path / "mistyped").exists()
        (tmp_path / "mistyped").mkdir()
        await pilot.press("x", "enter", "backspace", *place, "enter")
        assert "written, in a new folder: " in page(pilot.app)
        await pilot.press("x", "enter", "backspace", *place, "enter")
        assert "written: 2 files in " in page(pilot.app)


async def test_what_cannot_be_written_is_told(
    app_on: AppOn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("x", "enter", "backspace", *"file", "enter")
        assert "not written: " in page(pilot.app)
        await pilot.press("x", *["j"] * [*FORMS, *VIEWS].index("curl"), "enter", "enter")
        assert "choose a response" in page(pilot.app)  # the first step has none at hand
        await pilot.press("x", "escape")
        assert not isinstance(pilot.app.screen, Choose)


@pytest.mark.parametrize(("given", "says"), [
    ({"TERM": "linux"}, "the Linux console has no clipboard"),
    ({"TERM_PROGRAM": "Apple_Terminal"}, "Terminal.app ignores OSC 52"),
    ({"STY": "1.tty"}, "GNU screen does not pass OSC 52 on"),
    ({"VTE_VERSION": "6800"}, "VTE ignores OSC 52 before its version 0.76"),
    ({"VTE_VERSION": "9" * 5_000}, None),
    ({"VTE_VERSION": "7600"}, None), ({"TERM": "xterm-256color"}, None), ({}, None),
])
def test_terminals_that_take_no_copy_are_known(given: dict[str, str], says: str | None) -> None:
    assert copy_refusal(given) == says
    assert len(CLIPBOARD_REFUSALS) == 4


async def test_a_copy_that_would_be_lost_is_told(app_on: AppOn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM_PROGRAM", "Apple_Terminal")
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("y")
        assert "not copied: Terminal.app ignores OSC 52" in page(pilot.app)
        assert pilot.app.clipboard == ""


# -- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files that a browser was handed, where the app is in one."""
    files: dict[str, bytes] = {}

    def deliver(app: LoopInspector, binary: io.BytesIO, *, save_filename: str, mime_type: str) -> str:
        files[save_filename] = binary.read()
        return mime_type

    monkeypatch.setattr(LoopInspector, "is_web", True)
    monkeypatch.setattr(LoopInspector, "deliver_binary", deliver)
    return files


async def test_a_browser_is_handed_the_file_and_no_folder_is_asked_for(
    app_on: AppOn, downloads: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("]", "space", "x", *["j"] * [*FORMS, *VIEWS].index("svg"), "enter")
        (name,) = downloads
        assert f"handed to the browser: {name}" in page(pilot.app)
        assert downloads[name].startswith(b"<svg")
        assert b"@font-face" not in downloads[name]  # nothing is fetched when it is opened
        await pilot.press("X")
        archive = next(content for name, content in downloads.items() if name.endswith(".zip"))
        with ZipFile(io.BytesIO(archive)) as files:
            assert sorted(name.rpartition(".")[2] for name in files.namelist()) == ["jsonl", "md"]
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(("loop-inspector", "story-"))]
    assert len(downloads) == 2


async def test_what_cannot_be_made_for_a_browser_is_told(app_on: AppOn, downloads: dict[str, bytes]) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("x", *["j"] * [*FORMS, *VIEWS].index("curl"), "enter")
        assert "not downloaded: choose a response" in page(pilot.app)
    assert downloads == {}


async def test_a_copy_names_the_browser(app_on: AppOn, downloads: dict[str, bytes]) -> None:
    async with app_on().run_test(size=THREE) as pilot:
        await pilot.press("y")
        assert "if the browser allows it" in page(pilot.app)



@pytest.mark.parametrize(("sample", "form"), [("18-claude-code-cut-writes.jsonl", "md"),
                                              ("10-agent-ran-a-cut-call.session.jsonl", "bug")])
async def test_the_form_at_the_cursor_is_one_that_holds_the_turn(sample: str, form: str) -> None:
    """A bug report needs a provider's bytes, which the rows of an agent do not hold."""
    path = str(SAMPLES / sample)
    async with LoopInspector([path], opened_already=load([path], ReadingOptions())).run_test(size=THREE) as pilot:
        await pilot.press("x")
        assert re.search(rf"▶ {form} ", page(pilot.app))
        assert "smallest session (X)" in page(pilot.app), "the key that writes it without the dialog"


async def test_the_meaning_of_a_choice_is_shown_in_full(app_on: AppOn) -> None:
    """In a narrow terminal its end was cut off, and no key showed it; the box still names its keys."""
    async with app_on().run_test(size=(60, 20)) as pilot:
        for size in [(60, 20), (80, 24), (160, 45)]:
            await pilot.resize_terminal(*size)
            await pilot.press("x")
            choice = pilot.app.screen
            assert isinstance(choice, Choose), size
            for form, about in choice._words.entries:
                await pilot.pause()
                shown = " ".join(page(pilot.app).replace("│", " ").split())
                assert about in shown, form
                assert "enter chooses · esc leaves" in shown, size
                await pilot.press("down")
            await pilot.press("escape")


async def test_a_list_of_choices_is_no_higher_after_a_small_terminal(app_on: AppOn) -> None:
    """It kept the rows that the meaning of a choice took there, empty."""
    async with app_on().run_test(size=(80, 24)) as pilot:
        await pilot.press("x")
        await until(pilot, lambda: "enter chooses" in page(pilot.app))
        choose = pilot.app.screen.query_one("#choose")
        before = choose.size
        await pilot.resize_terminal(30, 10)
        await until(pilot, lambda: choose.size != before)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: choose.size == before)


async def test_a_picture_from_the_palette_is_written_as_any_export(app_on: AppOn, tmp_path: Path) -> None:
    """Textual would write it into a Downloads folder, which a server has not, with what looks like a credential."""
    key = "sk-proj-" + "a1B2" * 12
    entries = [entry([user(f"My key is {key}")], body(assistant("Text."), "stop", 5))]
    async with app_on(entries).run_test(size=(120, 40)) as pilot:
        for screen, name in (([], "screen.svg"), (["p"], "screen-2.svg"), (["P"], "screen-3.svg")):
            await pilot.press(*screen)
            await choose_command(pilot, "save a pic", "Save a picture")
            await until(pilot, lambda: "write the picture into" in page(pilot.app))
            await pilot.press("enter")
            await pilot.pause()
            written = (tmp_path / "data" / "exports" / f"loop-inspector-{name}").read_text("utf-8")
            assert written.startswith("<svg"), screen
            assert key not in written, screen
            assert "@font-face" not in written, screen
            assert "written" in page(pilot.app), screen
            await pilot.press("escape")


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_files(" ", lambda: {"turns.csv": "a"}) == "not written: expected a folder"
    assert not list(tmp_path.iterdir())
