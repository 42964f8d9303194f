"""The app in a browser: from an address to the first step of a sample, beside a terminal and the page alone.

Wall time, since what is waited for is spread over four processes, two of them the browser's; each round measures all
three, one after the other, and the least of each counts. A session has to start a process, as a terminal does, and to
load a page: the yardstick is the sum of the two.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from measure import Line, Report, Skip, milliseconds
from screens import FIRST_STEP
from start import INSPECTOR, ROOT
from terminal import Terminal

ROUNDS = 8
MARKED = """
// Notes when a frame of the app that holds the marker was painted; where a stub is wanted, nothing is connected.
(() => {
  const wanted = new RegExp(MARKER), decoder = new TextDecoder();
  const next = requestAnimationFrame;  // what came is drawn in the next frame, and seen when that has been painted
  const painted = () => next(() => next(() => { window.drawn = performance.now(); }));
  const Real = WebSocket;
  window.WebSocket = STUB ? class extends EventTarget {
    constructor() { super(); this.readyState = 0; painted(); }
    send() {}
  } : class extends Real {
    constructor(url) {
      super(url);
      let seen = "";
      this.addEventListener("message", (event) => {
        if (typeof event.data === "string" || window.drawn) return;
        seen += decoder.decode(event.data).replace(/\\x1b\\[[0-?]*[ -\\/]*[@-~]/g, "");
        if (wanted.test(seen)) painted();
      });
    }
  };
})();
"""

WHEN_DRAWN = """() => new Promise((done) => {
  const look = () => window.drawn ? done(window.drawn) : setTimeout(look, 10);
  look();
})"""


@contextmanager
def serving(sample: str) -> Iterator[str]:
    """A running server; the address of a session."""
    with tempfile.TemporaryDirectory() as home:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTUAL", "XDG_"))}
        server = subprocess.Popen([*INSPECTOR, "serve", "--port", "0", sample], cwd=ROOT, text=True,
                                  env=env | {"HOME": home}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
            server.wait()


def paint_time(browser: Any, url: str, *, stub: bool) -> float:
    """Seconds from the navigation until the page has painted: its terminal alone, or the first step of the sample.

    The page comes from an empty cache, with the cookie already there.
    """
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    try:
        context.request.get(url)
        page = context.new_page()
        page.add_init_script(MARKED.replace("MARKER", repr(FIRST_STEP)).replace("STUB", "true" if stub else "false"))
        page.goto(url.partition("?")[0], wait_until="commit")
        return float(page.evaluate(WHEN_DRAWN)) / 1000
    finally:
        context.close()


def in_terminal(sample: str) -> tuple[float, float]:
    """Wall and CPU seconds from exec until the first step was written."""
    start = time.perf_counter()
    with Terminal([*INSPECTOR, sample], str(ROOT)) as terminal:
        used = terminal.wait_for(FIRST_STEP)
        return time.perf_counter() - start, used


def report() -> Report:
    """One session beside its parts."""
    name = "a session's first step ÷ (first step in a terminal + page)"
    if not sys.platform.startswith("linux"):
        yield Skip(name, "the terminal needs Linux")
        return
    try:
        import playwright.sync_api  # noqa: F401

        from tests.scenes import chromium
    except ImportError as why:
        yield Skip(name, f"{why}: the extra `browser` brings it")
        return
    if chromium.browser_path() is None:
        yield Skip(name, f"no browser on the path: {', '.join(chromium.NAMES)}")
        return
    from inspector.sessions.folders import samples

    sample = str(samples()[1].path)  # of one turn: several begin with the table of turns
    session, bare, wall, cpu = [], [], [], []
    with serving(sample) as url, chromium.browser() as browser:
        assert re.match(r"http://127\.0\.0\.1:", url)
        for _ in range(ROUNDS + 1):  # the first of each fills the caches; it is never the least
            session.append(paint_time(browser, url, stub=False))
            bare.append(paint_time(browser, url, stub=True))
            taken = in_terminal(sample)
            wall.append(taken[0])
            cpu.append(taken[1])
    yield Line(name, min(session) / (min(wall) + min(bare)), most=2,
               note=milliseconds(min(session), min(wall), min(bare)))
    yield Line("its parts alone: the page ÷ first step in a terminal", min(bare) / min(wall),
               note=f"{milliseconds(min(bare), min(wall))}, of which CPU {min(cpu) * 1000:.0f} ms")
