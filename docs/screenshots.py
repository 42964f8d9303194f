"""Takes the README's pictures; needs Chromium (`chromium` on the path) and Fira Code.

    python docs/screenshots.py            all of them
    python docs/screenshots.py browser    only those whose name is given

The app is driven as in the tests, its screen exported as SVG without outside fonts, and drawn by the browser. The app
in a browser is a picture of the page that `inspector serve` serves; that needs the extra `browser`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inspector.tui.app import LoopInspector

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
    ("picker", (), ()),
)
PAGE = "browser"
BROWSER = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--force-device-scale-factor=1",
)


async def exported(paths: tuple[str, ...], keys: tuple[str, ...], size: tuple[int, int]) -> str:
    """The screen as SVG after the keys were pressed."""
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
        return re.sub(r"@font-face\s*\{.*?\}", "", app.export_screenshot(title="inspector"), flags=re.DOTALL)


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
    os.environ["HOME"] = tempfile.mkdtemp()  # nobody's own transcripts are in a picture
    if not names or PAGE in names:
        paged(SAMPLE, tuple(key if key != "enter" else "Enter" for key in (*HELD, "4")),
              ROOT / "docs" / "images" / f"{PAGE}.png", browser)
    for name, paths, keys in SHOTS:
        for size in SIZES if not names or name in names else ():
            svg = asyncio.run(exported(paths, keys, size))
            drawn(svg, ROOT / "docs" / "images" / f"{name}-{size[0]}x{size[1]}.png", browser)


if __name__ == "__main__":
    main(sys.argv[1:])
