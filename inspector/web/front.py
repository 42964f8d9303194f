"""What a browser is given: the page, the files that it asks for by name, and the headers of every answer.

The terminal's script, style and fonts are textual-serve's; the page around them is ours, names no other host and holds
no script. Only names of the table are answered, so no path is ever looked up on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple


class PageFile(NamedTuple):
    """One file of the page."""

    place: Path
    content_type: str


_OURS, _THEIRS = (Path(str(files(package))) / "static" for package in ("inspector.web", "textual_serve"))
FILES: Mapping[str, PageFile] = {
    "page.css": PageFile(_OURS / "page.css", "text/css"),
    "page.js": PageFile(_OURS / "page.js", "text/javascript"),
    "icon.svg": PageFile(_OURS / "icon.svg", "image/svg+xml"),
    "xterm.css": PageFile(_THEIRS / "css" / "xterm.css", "text/css"),
    "textual.js": PageFile(_THEIRS / "js" / "textual.js", "text/javascript"),
    "mono.ttf": PageFile(_THEIRS / "fonts" / "RobotoMono-VariableFont_wght.ttf", "font/ttf"),
    "mono-italic.ttf": PageFile(_THEIRS / "fonts" / "RobotoMono-Italic-VariableFont_wght.ttf", "font/ttf"),
}
"""Name under `/static/` -> file."""

HEADERS: Mapping[str, str] = {
    # Styles may stand in the page because xterm.js writes its own; a script may not. 'self' is the WebSocket too.
    "Content-Security-Policy":
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "clipboard-read=(), camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
    "Server": "loop-inspector",
}
"""What every answer says, a refusal too."""


def page(title: str) -> str:
    """The page of a tab."""
    return _PAGE.format(title=escape(title))


ONWARD = """<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">
<title>Loop Inspector</title>"""
"""Leads from the address with the token to the one without, as our own page: a browser that came here from another site
would send no strict cookie after a redirect."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="dark light">
<title>{title}</title>
<link rel="icon" type="image/svg+xml" href="/static/icon.svg">
<link rel="preload" as="font" type="font/ttf" href="/static/mono.ttf" crossorigin>
<link rel="stylesheet" href="/static/xterm.css">
<link rel="stylesheet" href="/static/page.css">
<script src="/static/textual.js"></script>
<script src="/static/page.js"></script>
</head>
<body>
<div id="terminal" class="textual-terminal" data-font-size="16"></div>
<noscript>This page is a terminal and needs JavaScript; inspector explain gives the same as text.</noscript>
<div id="ended" role="alertdialog" aria-labelledby="ended-word" aria-describedby="ended-said" hidden>
<div>
<h2 id="ended-word">The session has ended</h2>
<pre id="ended-said"></pre>
<button id="again" type="button">Start again</button>
</div>
</div>
</body>
</html>
"""
