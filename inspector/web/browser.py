"""The values that are exchanged with a browser (page, files, headers, frames), and the access control of requests.

The terminal's script, style and fonts are textual-serve's; the page around them is ours, without scripts and references
to other hosts. Only names in a table are served, so no path of a request is looked up on disk. `Entrance` decides which
requests are admitted. The module is pure.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from inspector.provider.hosts import UNKNOWN_HOST, is_own_host
from loop_core.errors import LoopError


class PageFile(NamedTuple):
    """One static file of the page."""

    place: Path
    content_type: str


# The folder is found without importing `textual_serve`, which would import its server.
_OURS, _THEIRS = (Path(next(iter(find_spec(package).submodule_search_locations))) / "static"  # type: ignore[arg-type,union-attr]
                  for package in ("inspector.web", "textual_serve"))
FILES: Mapping[str, PageFile] = {
    "page.css": PageFile(_OURS / "page.css", "text/css"),
    "page.js": PageFile(_OURS / "page.js", "text/javascript"),
    "icon.svg": PageFile(_OURS / "icon.svg", "image/svg+xml"),
    "xterm.css": PageFile(_THEIRS / "css" / "xterm.css", "text/css"),
    "textual.js": PageFile(_THEIRS / "js" / "textual.js", "text/javascript"),
    "mono.ttf": PageFile(_THEIRS / "fonts" / "RobotoMono-VariableFont_wght.ttf", "font/ttf"),
    "mono-italic.ttf": PageFile(_THEIRS / "fonts" / "RobotoMono-Italic-VariableFont_wght.ttf", "font/ttf"),
}
"""Name under `/static/` -> the file that is served."""

HEADERS: Mapping[str, str] = {
    # Styles within the page are allowed, because xterm.js inserts some; scripts are not. 'self' includes the WebSocket.
    "Content-Security-Policy":
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # for browsers without `frame-ancestors`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "clipboard-read=(), camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
    "Server": "loop-inspector",
}
"""The headers of every answer, including refusals."""


def page(title: str) -> str:
    """The page of a tab."""
    return _PAGE.format(title=escape(title))


ONWARD = """<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">
<title>Loop Inspector</title>"""
"""A page that loads the address without the token, because no strict cookie is sent after a redirect from another site.
"""

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


# -- Frames that a page sends over its WebSocket, as values. A malformed frame is refused with what was expected -----
# A frame is what textual-serve's page sends: a JSON array of a word and perhaps a value.


MOST_CELLS = 2_000
"""The largest number of columns or rows. A browser shows fewer, and the app would draw every cell."""


class FrameError(LoopError):
    """A frame that our page never sends."""


class InputFrame(NamedTuple):
    """Keys, mouse and pasted text, as a terminal sends them."""

    data: bytes


class SizeFrame(NamedTuple):
    """The size of the terminal in cells."""

    width: int
    height: int


class PingFrame(NamedTuple):
    """A ping, to be answered with the same text."""

    text: str


class FocusFrame(NamedTuple):
    """Whether the page has the keyboard."""

    here: bool


Frame: TypeAlias = InputFrame | SizeFrame | PingFrame | FocusFrame


def frame_of(text: str) -> Frame:
    """Parses one frame. Raises `FrameError` for a frame that our page never sends."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise FrameError("not JSON; expected an array of a word and its value") from None
    if not isinstance(value, list) or not value or not isinstance(value[0], str) or value[0] not in FRAMES:
        raise FrameError(f"unknown frame; expected an array that begins with one of {', '.join(FRAMES)}")
    return FRAMES[value[0]](value[1] if len(value) > 1 else None)


def cells(value: Any, name: str) -> int:
    """A number of columns or rows, at most `MOST_CELLS`. Raises `FrameError` if it is not a positive whole number."""
    if type(value) is not int or value < 1:
        raise FrameError(f"{name}: expected a whole number from 1")
    return min(value, MOST_CELLS)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise FrameError(f"{name}: expected a text")
    return value


def _size_frame(value: Any) -> SizeFrame:
    if not isinstance(value, dict):
        raise FrameError("resize: expected an object with width and height")
    return SizeFrame(cells(value.get("width"), "width"), cells(value.get("height"), "height"))


ESCAPE = "\x1b"
ESCAPE_KEY = "\x1b[27u"
"""The escape key by its number (https://sw.kovidgoyal.net/kitty/keyboard-protocol/). Its single byte also begins longer
keys: with a letter that follows within 100 ms, it would be read as alt and the letter. A page sends each key in its own
frame, so it can be distinguished here."""


def _input_frame(value: Any) -> Frame:
    typed = _text(value, "stdin")
    return InputFrame((ESCAPE_KEY if typed == ESCAPE else typed).encode("utf-8", "replace"))


FRAMES: Mapping[str, Callable[[Any], Frame]] = {
    "stdin": _input_frame,
    "resize": _size_frame,
    "ping": lambda value: PingFrame(_text(value, "ping")[:64]),  # bounded, because the server sends it back
    "focus": lambda value: FocusFrame(True),
    "blur": lambda value: FocusFrame(False),
}
"""Word of a frame -> the function that makes a frame of the value after it."""


# -- Access control: Host and Origin, the token of the printed address, its cookie -----------------------------------
# A browser sends requests for any page that it shows, so the origin of a request is checked before its token or cookie.
# Host reveals a name that was rebound to this machine; Origin and Sec-Fetch-Site reveal a page of another site.


OWN_SITE = ("same-origin", "none")
"""Values of Sec-Fetch-Site for our own page, and for an address that was typed or opened from outside the browser."""


class EntryRefusal(NamedTuple):
    """A refused request: the HTTP status, and one line for the browser."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class BrowserClaims:
    """The facts of a request that access control reads; None stands for an absent header."""

    hosts: tuple[str, ...]
    origin: str | None = None
    site: str | None = None
    """The header Sec-Fetch-Site, which a page cannot forge."""
    cookie: str | None = None
    token: str | None = None
    websocket: bool = False
    now: float = 0.0
    """The time of the request, in seconds of the same clock as `Entrance.until`."""


@dataclass(frozen=True, slots=True, repr=False)
class Entrance:
    """The server's access control: hosts, a token, and a cookie; token and cookie do not follow from each other."""

    token: str
    cookie: str
    exposed: bool = False
    """Whether the server listens beyond this machine. Then Host may be any IP address, not only a loopback one."""
    name: str = ""
    """The host name on which the server listens."""
    encrypted: bool = False
    """Whether the server has a certificate, so that its page has an https address."""
    until: float = inf
    """The time at which token and cookie expire, in seconds of the server's clock."""

    def refusal(self, claims: BrowserClaims) -> EntryRefusal | None:
        """Why this request is refused; None if it is admitted."""
        return next((refusal for holds, refusal in RULES if not holds(self, claims)), None)

    def brings_token(self, claims: BrowserClaims) -> bool:
        """Whether the request contains the token of the printed address."""
        return _same(claims.token, self.token)

    def from_elsewhere(self, claims: BrowserClaims) -> bool:
        """Whether another site caused the request; browsers send a strict cookie only from our own page."""
        return claims.site is not None and claims.site not in OWN_SITE


def _own_origin(entrance: Entrance, claims: BrowserClaims) -> bool:
    if claims.origin is None:
        return not claims.websocket  # browsers send Origin with every WebSocket (RFC 6455 section 4.1)
    return claims.origin.lower() == f"http{'s' if entrance.encrypted else ''}://{claims.hosts[0]}".lower()


RULES: tuple[tuple[Callable[[Entrance, BrowserClaims], bool], EntryRefusal], ...] = (
    (lambda entrance, claims: is_own_host(claims.hosts, entrance.name, entrance.exposed), EntryRefusal(*UNKNOWN_HOST)),
    (_own_origin, EntryRefusal(403, "only the page of this server may ask that")),
    (lambda entrance, claims:
        not entrance.from_elsewhere(claims) or (entrance.brings_token(claims) and not claims.websocket),
     EntryRefusal(403, "another site led here; open the address that the server printed")),
    (lambda entrance, claims: claims.token is None or entrance.brings_token(claims),
     EntryRefusal(403, "the token is wrong; open the address that the server printed last")),
    (lambda entrance, claims: entrance.brings_token(claims) or _same(claims.cookie, entrance.cookie),
     EntryRefusal(403, "the token is missing; open the address that the server printed")),
    (lambda entrance, claims: claims.now < entrance.until,
     EntryRefusal(403, "the token has expired; SIGUSR1 makes the server print an address with a new one")),
)
"""The conditions of a request, in the order in which they are tested, each with its refusal."""


def _same(value: str | None, expected: str) -> bool:
    """Whether two values are equal, compared in constant time."""
    if value is None:
        return False
    # `compare_digest` takes only ASCII texts, so the texts are encoded
    return hmac.compare_digest(value.encode("utf-8", "surrogateescape"), expected.encode())
