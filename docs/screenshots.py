"""Takes the pictures of docs/screens.md and the README; needs Chromium (`chromium` on the path) and Fira Code.

    python docs/screenshots.py                    all of them
    python docs/screenshots.py browser turns      only those whose name is given
    python docs/screenshots.py --to /tmp/pictures  into another folder

The app is driven as in the tests, its screen exported as SVG without outside fonts, and drawn by the browser. With
`pngquant` on the path each picture gets as many colours as fit into `MOST_BYTES`. The app in a browser is a picture of
the page that `inspector serve` serves; that needs the extra `browser`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from math import ceil
from pathlib import Path

from textual.pilot import Pilot

from inspector.config.settings import Settings
from inspector.live.headless import LiveOptions, start
from inspector.tui.app import LoopInspector
from inspector.tui.paint import ANSI, CONTRAST

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
FOLDER = "sample_sessions"
SAMPLE = f"{FOLDER}/01-cut-call-and-long-answer.session.jsonl"
"""Two turns: a cut call that the agent ran, which is the worse, and a long answer that a limit ended."""
SIZES = {(160, 45): 9 / 12.2, (80, 24): 10 / 12.2}
"""The scale of each: a cell is 12.2 units wide in the SVG, and whole pixels for each take fewer bytes."""
CUT = ("enter",)
"""From the table of turns to the step that evaluates the cut call."""
LONG = (*CUT, "!")
"""On to the turn with the long answer."""
SHOTS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("turns", (FOLDER,), ()),
    ("session", (SAMPLE,), CUT),
    ("verdict", (SAMPLE,), (*CUT, "V")),
    ("response", (SAMPLE,), (*CUT, "2")),
    ("wire", (SAMPLE,), (*CUT, "3", ".")),
    ("calls", (SAMPLE,), (*CUT, "4")),
    ("request", (SAMPLE,), (*CUT, "5", "v")),
    ("limits", (SAMPLE,), (*LONG, "e", "5")),
    ("edit", (SAMPLE,), (*LONG, "W", "space", "B", "r", "i", "e", "f", "l", "y", "full_stop")),
    ("branch", (SAMPLE,), (*LONG, "F")),
    ("tree", (SAMPLE,), (*LONG, "F", "R")),
    ("beside", (SAMPLE,), (*LONG, "F", "R", "d")),
    ("tune", (SAMPLE,), (*LONG, "u")),
    ("policies", (SAMPLE,), (*CUT, "p", "down")),
    ("providers", (), ("P", "down", "down")),
    ("begin", (), ("L",)),
    ("contrast", (SAMPLE,), (*CUT, "4")),
    ("ansi", (SAMPLE,), (*CUT, "4")),
)
PAINT = {"contrast": CONTRAST, "ansi": ANSI}
"""The themes of the pictures that are not in the dark one."""
PAGE, LIVE = "browser", "live"
"""The pictures that are taken otherwise than by keys in the app."""
MOST_BYTES = 100_000
COLOURS = (64, 48, 32, 24, 16, 12)
BROWSER = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--default-background-color=00000000",
)


FIRST = ("The queue was saturated for nineteen minutes, so that nothing moved. A deploy was rolled back before anyone "
         "saw it, and the certificates ")
SECOND = (FIRST[-40:], "had run out on a Sunday. All three have been closed; the owners ", "are named below.")
"""The answers of the server of the live picture: a cut one, then its continuation as far as it has come."""


async def serve_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One answer of that server; it never ends the second."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    again = len(json.loads(await reader.readexactly(size))["messages"]) > 1
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    for text in SECOND[:2] if again else (FIRST,):
        event = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
        writer.write(b"data: " + json.dumps(event).encode() + b"\n\n")
    await writer.drain()
    if again:
        await reader.read()  # to the end of the connection: this answer stays under way
        return
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}], "usage": {
        "prompt_tokens": 12, "completion_tokens": 32, "total_tokens": 44}}
    writer.write(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n")
    writer.close()


async def live_svg(size: tuple[int, int]) -> str:
    """A live turn in the middle of a continuation."""
    server = await asyncio.start_server(serve_answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        options = LiveOptions("openai_chat", "gpt-5-mini", address, prompt="What happened?",
                              record=f"{folder}/live.jsonl", assignments=("max_tokens=32",))
        app = LoopInspector(live=start(options, Settings()))
        async with app.run_test(size=size) as pilot:
            for word in ("continuation 1", "owners"):
                await pilot.press("d")
                while word not in app.export_screenshot().replace("&#160;", " "):
                    await pilot.pause(0.05)
            await pilot.pause(0.2)
            svg = screen_svg(app)
            await pilot.press("ctrl+q")  # the turn is cancelled, and the connection with it
    server.close()
    return svg


def screen_svg(app: LoopInspector, title: str = "inspector") -> str:
    """The screen as SVG, without outside fonts."""
    return re.sub(r"@font-face\s*\{.*?\}", "", app.export_screenshot(title=title), flags=re.DOTALL)


async def press(app: LoopInspector, pilot: Pilot[None], keys: Sequence[str]) -> None:
    """Presses keys, and after each waits for what a thread works out."""
    for key in ("", *keys):  # first for the app's start
        if key:
            await pilot.press(key)
        await app.workers.wait_for_complete()
        await pilot.pause()
        while getattr(app.screen, "reading", False):  # the table of turns: files in a thread, rows by a timer
            await pilot.pause(0.05)
    await pilot.pause(0.5)  # for what a form works out once nobody types
    await app.workers.wait_for_complete()


async def keys_svg(paths: tuple[str, ...], keys: tuple[str, ...], size: tuple[int, int], theme: str | None) -> str:
    """The screen as SVG after the keys were pressed."""
    app = LoopInspector(paths, theme=theme)
    async with app.run_test(size=size) as pilot:
        await press(app, pilot, keys)
        return screen_svg(app)


def draw(svg: str, target: Path, browser: str, scale: float, *, above: str = "") -> None:
    """The SVG as a PNG of its own size, with HTML laid over it."""
    width, height = (float(number) for number in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        style = f"<style>body {{ margin: 0 }} svg {{ width: {width}px; height: {height}px }}</style>"
        page.write_text(f"<meta charset=utf-8>{style}<body>{svg}{above}</body>", encoding="utf-8")
        subprocess.run(  # noqa: S603
            [browser, *BROWSER, f"--force-device-scale-factor={scale}", f"--user-data-dir={folder}/profile",
             f"--window-size={ceil(width)},{ceil(height)}", f"--screenshot={target}", page.as_uri()],
            check=True, capture_output=True, timeout=120,
        )


def draw_page(path: str, keys: tuple[str, ...], target: Path, browser: str) -> None:
    """The page of `inspector serve` after the keys were pressed."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-c", "from inspector.cli import run; run()", "serve", "--port", "0", path]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=list(BROWSER))
            page = chromium.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            page.goto(str(server.stdout and server.stdout.readline().strip()))
            page.wait_for_selector("body.-first-byte")
            page.wait_for_timeout(1_000)
            for key in keys:
                page.keyboard.press(key)
                page.wait_for_timeout(1_000)
            page.screenshot(path=target)
            chromium.close()
    finally:
        server.terminate()
        server.wait()


def compress(target: Path) -> None:
    """The picture with the most colours that fit, if pngquant is there."""
    pngquant = shutil.which("pngquant")
    for colours in COLOURS if pngquant else ():
        command = [str(pngquant), "--nofs", "--speed", "1", "--strip", str(colours), "-"]
        small = subprocess.run(command, input=target.read_bytes(), capture_output=True, check=True).stdout  # noqa: S603
        if len(small) < MOST_BYTES or colours == COLOURS[-1]:
            target.write_bytes(small)
            return


def find_browser() -> str:
    """Chromium, or the end of the script."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("no chromium found: install Debian's package chromium")
    return browser


def leave_home() -> None:
    """Gives the app an empty home: nobody's own transcripts and recent files are in a picture."""
    os.chdir(ROOT)  # paths in the pictures begin here
    os.environ["HOME"] = tempfile.mkdtemp()


def main() -> None:
    """Takes every picture at both sizes, or those of these names."""
    names = [PAGE, LIVE, *(name for name, _, _ in SHOTS)]
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--to", type=Path, default=IMAGES)
    options = parser.parse_args()
    if unknown := set(options.names) - set(names):
        parser.error(f"no such picture: {', '.join(sorted(unknown))}")
    wanted, browser, folder = options.names or names, find_browser(), options.to.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for size, scale in SIZES.items():
        for name, paths, keys in SHOTS:
            if name in wanted:
                leave_home()
                svg = asyncio.run(keys_svg(paths, keys, size, PAINT.get(name)))
                draw(svg, folder / f"{name}-{size[0]}x{size[1]}.png", browser, scale)
        if LIVE in wanted:
            leave_home()
            draw(asyncio.run(live_svg(size)), folder / f"{LIVE}-{size[0]}x{size[1]}.png", browser, scale)
    if PAGE in wanted:
        leave_home()
        draw_page(SAMPLE, ("Enter", "4"), folder / f"{PAGE}.png", browser)
    for name in wanted:
        for target in folder.glob(f"{name}*.png"):
            compress(target)


if __name__ == "__main__":
    main()
