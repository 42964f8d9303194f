"""Takes the pictures of docs/screens.md and the README; needs Chromium (`chromium` on the path) and Fira Code.

    python docs/screenshots.py            all of them
    python docs/screenshots.py browser    only those whose name is given

The app is driven as in the tests, its screen exported as SVG without outside fonts, and drawn by the browser. The app
in a browser is a picture of the page that `inspector serve` serves; that needs the extra `browser`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inspector.config.settings import Settings
from inspector.live.headless import LiveOptions, start
from inspector.tui.app import LoopInspector
from inspector.tui.session_files import ReadingOptions, ScreenPlace, load

ROOT = Path(__file__).parents[1]
SAMPLE = str(ROOT / "sample_sessions" / "01-cut-call-and-long-answer.session.jsonl")
SIZES = ((160, 45), (80, 24))
HELD = (":", "2", "2", "enter")
"""To the step that evaluates the cut call."""
SHOTS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("session", (SAMPLE,), (*("space",) * 11,)),
    ("calls", (SAMPLE,), (*HELD, "4")),
    ("response", (SAMPLE,), (*HELD, "2")),
    ("wire", (SAMPLE,), (*HELD, "3")),
    ("limits", (SAMPLE,), ("e",)),
    ("branch", (SAMPLE,), ("e", "5", "enter")),
    ("tune", (SAMPLE,), ("u", "wait")),
    ("policies", (SAMPLE,), ("p", "wait", "}", "down")),
    ("providers", (), ("P", "wait", "down", "down")),
    ("turns", ("sample_sessions",), ("wait",)),
)
PAGE = "browser"
BROWSER = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--force-device-scale-factor=1",
)


FIRST = ("The queue was saturated for nineteen minutes, so that nothing moved. A deploy was rolled back before anyone "
         "saw it, and the certificates ")
SECOND = (FIRST[-40:], "had run out on a Sunday. All three have been closed; the owners ", "are named below.")
"""What the server of the live picture says: a cut answer, then its continuation as far as it has come."""


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One answer of that server; it never ends the second."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    again = len(json.loads(await reader.readexactly(size))["messages"]) > 1
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    for said in SECOND[:2] if again else (FIRST,):
        event = {"choices": [{"index": 0, "delta": {"content": said}, "finish_reason": None}]}
        writer.write(b"data: " + json.dumps(event).encode() + b"\n\n")
    await writer.drain()
    if again:
        await reader.read()  # to the end of the connection: this answer stays under way
        return
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}], "usage": {
        "prompt_tokens": 12, "completion_tokens": 32, "total_tokens": 44}}
    writer.write(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n")
    writer.close()


async def streaming(size: tuple[int, int]) -> str:
    """A live turn in the middle of a continuation."""
    server = await asyncio.start_server(answering, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        typed = LiveOptions("openai_chat", "gpt-5-mini", address, prompt="What happened?",
                            record=f"{folder}/live.jsonl", assignments=("max_tokens=32",))
        app = LoopInspector(live=start(typed, Settings()))
        async with app.run_test(size=size) as pilot:
            for word in ("continuation 1", "owners"):
                await pilot.press("d")
                while word not in app.export_screenshot().replace("&#160;", " "):
                    await pilot.pause(0.05)
            await pilot.pause(0.2)
            made = picture(app)
            await pilot.press("ctrl+q")  # the turn is cancelled, and the connection with it
    server.close()
    return made


def picture(app: LoopInspector) -> str:
    """The screen as SVG, without outside fonts."""
    return re.sub(r"@font-face\s*\{.*?\}", "", app.export_screenshot(title="inspector"), flags=re.DOTALL)


async def exported(paths: tuple[str, ...], keys: tuple[str, ...], size: tuple[int, int]) -> str:
    """The screen as SVG after the keys were pressed."""
    if paths == (SAMPLE,):  # it alone, from its first step
        app = LoopInspector(paths, opened_already=load(paths, ReadingOptions()), begins=ScreenPlace(paths))
    else:
        app = LoopInspector(paths)
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        for key in keys:
            if key == "wait":  # for what a thread works out
                await app.workers.wait_for_complete()
                await pilot.pause()
            else:
                await pilot.press(key)
        await app.workers.wait_for_complete()
        await pilot.pause()
        return picture(app)


def drawn(svg: str, target: Path, browser: str) -> None:
    """The SVG as a PNG of its own size."""
    width, height = (float(found) for found in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(f"<meta charset=utf-8><body style='margin:0'>{svg}</body>", encoding="utf-8")
        subprocess.run(  # noqa: S603
            [browser, *BROWSER, f"--user-data-dir={folder}/profile", f"--window-size={int(width)},{int(height)}",
             f"--screenshot={target}", page.as_uri()],
            check=True, capture_output=True, timeout=120,
        )


def paged(path: str, keys: tuple[str, ...], target: Path, browser: str) -> None:
    """The page of `inspector serve` after the keys were pressed."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-c", "from inspector.cli import run; run()", "serve", "--port", "0", path]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=browser, args=list(BROWSER))
            page = opened.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            page.goto(str(server.stdout and server.stdout.readline().strip()))
            page.wait_for_selector("body.-first-byte")
            for key in keys:
                page.wait_for_timeout(300)
                page.keyboard.press(key)
            page.wait_for_timeout(1_000)
            page.screenshot(path=target)
            opened.close()
    finally:
        server.terminate()
        server.wait()


def main(names: list[str]) -> None:
    """Takes every picture at both sizes, or those of these names."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("no chromium found: install Debian's package chromium")
    os.chdir(ROOT)  # so that paths are told from here
    os.environ["HOME"] = tempfile.mkdtemp()
    if not names or PAGE in names:
        paged(SAMPLE, tuple(key if key != "enter" else "Enter" for key in (*HELD, "4")),
              ROOT / "docs" / "images" / f"{PAGE}.png", browser)
    for name, paths, keys in SHOTS:
        for size in SIZES if not names or name in names else ():
            os.environ["HOME"] = tempfile.mkdtemp()  # nobody's own transcripts and recent files are in a picture
            svg = asyncio.run(exported(paths, keys, size))
            drawn(svg, ROOT / "docs" / "images" / f"{name}-{size[0]}x{size[1]}.png", browser)
    for size in SIZES if not names or "live" in names else ():
        drawn(asyncio.run(streaming(size)), ROOT / "docs" / "images" / f"live-{size[0]}x{size[1]}.png", browser)


if __name__ == "__main__":
    main(sys.argv[1:])
