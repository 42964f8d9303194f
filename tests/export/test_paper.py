"""The exported page as a browser lays it out: on a phone, and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from inspector.export import form_files
from tests.scenes import chromium
from tests.scenes.recordings import cut_call_ran, show

if chromium.browser_path() is None:
    pytest.skip(f"no browser: none of {', '.join(chromium.NAMES)} is on the path", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="no driver for a browser: the extra `browser` brings Playwright")

A4 = 794 - 2 * 38
"""The width of a sheet within Chromium's margins of one centimetre, in pixels of CSS."""


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """The report of a session in which a cut call was run."""
    (text,) = form_files(show(*cut_call_ran()), "html").values()
    with chromium.browser() as browser:
        opened = browser.new_page(color_scheme="dark")
        opened.set_content(text)
        yield opened


def test_the_page_is_as_wide_as_a_phone_and_a_row_of_bytes_hangs_behind_its_offset(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    lines = page.evaluate("""[...document.querySelectorAll("pre span, pre b")].map((row) => {
        const range = document.createRange();
        range.selectNodeContents(row);
        return [...range.getClientRects()].filter((line) => line.width).map((line) => line.left);
    }).filter((lefts) => lefts.length > 2)""")
    assert lines, "a row is longer than the page is wide"
    assert all(later > first for first, *others in lines for later in others)


def test_on_paper_each_column_is_whole_and_the_ink_dark(page: Any) -> None:
    page.set_viewport_size({"width": A4, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    wide = page.evaluate("[...document.querySelectorAll('.wide')].map((each) => [each.scrollWidth, each.clientWidth])")
    assert wide
    assert all(needed <= there for needed, there in wide)
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 36, 48)"
    page.emulate_media(media="screen", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(221, 227, 234)"
