"""What a browser is given: a page that names nobody else, the files that it asks for, headers that hold it to that."""

import re

import pytest

from inspector.web import browser
from tests.scenes.web import ECHO, serving

SAID = {
    "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store", "Server": "loop-inspector",
}
POLICY = ("default-src 'none'", "script-src 'self'", "font-src 'self'", "img-src 'self'", "connect-src 'self'",
          "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'")


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/nothing", 404), ("/?token=wrong", 403)])
async def test_every_answer_says_what_a_browser_may_do_with_it(path: str, status: int) -> None:
    async with serving(ECHO) as at, at.session.get(at.url(path), headers=at.headers()) as answer:
        assert answer.status == status
        assert {name: answer.headers[name] for name in SAID} == SAID
        assert "clipboard-read=()" in answer.headers["Permissions-Policy"]
        parts = answer.headers["Content-Security-Policy"].split("; ")
        assert set(POLICY) < set(parts)
        assert not [part for part in parts if re.search(r"https?:|\*|unsafe-eval|script-src.*unsafe", part)]


async def test_the_page_holds_no_script_and_no_other_host() -> None:
    async with serving(ECHO) as at, at.session.get(at.url("/"), headers=at.headers()) as answer:
        text = await answer.text()
        assert "<title>&lt;a&gt; &amp; b</title>" in text
        assert not re.search(r"<script>|<script(?![^>]* src=)|\son\w+=|https?:|//\w", text)


async def test_everything_that_the_page_and_its_styles_name_is_there() -> None:
    types = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "ttf": "font/ttf"}
    async with serving(ECHO) as at:
        wanted, seen = ["/"], set()
        while wanted:
            path = wanted.pop()
            if path in seen:
                continue
            seen.add(path)
            async with at.session.get(at.url(path), headers=at.headers()) as answer:
                assert answer.status == 200, path
                content = await answer.read()
                if path != "/":
                    assert answer.content_type == types[path.rpartition(".")[2]]
                    assert answer.headers["Cache-Control"] == "no-cache"
                if path == "/" or path.endswith(".css"):
                    wanted += re.findall(r"""(?:src="|href="|url\(["']?)(/[^"')]*)""", content.decode())
    assert len(seen) == 8


@pytest.mark.parametrize("name", ["page.js", "page.css"])
def test_our_own_files_name_no_other_host(name: str) -> None:
    text = re.sub(r"^\s*//.*$", "", browser.FILES[name].place.read_text("utf-8"), flags=re.MULTILINE)
    assert not re.search(r"https?:|//\w", text.replace("ws://${location.host}", ""))
