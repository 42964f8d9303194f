"""The web server: its routes, and its bounded number of tabs, each a process that browsers reach by a WebSocket."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from urllib.parse import quote

from aiohttp import WSCloseCode, WSMsgType, web

from inspector.config.files import PLACE_VARIABLE
from inspector.provider.listener import Certificate, ProblemLog, ending_signal, listening
from inspector.web import browser
from inspector.web.browser import BrowserClaims, Entrance
from inspector.web.tab import GRACE, SCHEMES, Tab

MOST_BYTES = 4 << 20
"""The largest size in bytes of one frame from a page; pasted text arrives in one frame."""
HEAD_WAIT = 10.0
"""The number of seconds within which the head of a request must arrive."""
PATIENCE = 3.0
"""The number of seconds that a page waits for a free tab; a reloaded page connects before its old connection closes."""
STALLED = 20.0
"""The seconds after which a process that reads no input, or a browser that reads no output, is abandoned."""
PING = 15.0
"""The number of seconds between pings on a WebSocket. A browser that does not answer a ping counts as gone."""
EXPIRED = 4001
"""The close code of a page's WebSocket if the token has expired; `page.js` reports it to the user."""
SERVER_ENDED = "the server has ended; inspector serve starts it again, under another address"
NO_CURSOR = b"\x1b[?25l"
"""The escape sequence that hides the cursor until the app has drawn itself."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Tell = Callable[[str], None]


class AppServer:
    """Serves the app to browsers that the access control admits."""

    def __init__(self, argv: Sequence[str], entrance: Entrance, *, title: str, most: int, tell: Tell,
                 environment: Mapping[str, str], idle: float,
                 clock: Callable[[], float] = time.monotonic) -> None:
        """`idle` is the number of seconds that a tab without a browser is kept."""
        self._argv, self._entrance, self._title, self._most = argv, entrance, title, most
        self._tell, self._environment = tell, environment
        self._idle, self._clock = idle, clock
        self._ended_tabs: deque[tuple[str, str]] = deque(maxlen=most)
        """The names of the tabs that ended because no browser returned, each with its place in the session."""
        self._tab_left = asyncio.Event()
        self._unshown_tabs: dict[Tab, asyncio.TimerHandle] = {}
        """Tab that no browser shows -> the timer that ends it; the tab that was left last comes last."""
        self.trouble = ProblemLog(tell)
        """Reports malformed requests, and connections for which there is no room."""
        self.cookie = "loop-inspector"
        """The cookie's name, to which `run` adds the port, because browsers share cookies between the ports of a host.
        """
        self._places = asyncio.Semaphore(most)
        self.tabs: dict[Tab, asyncio.Task[None]] = {}
        """Tab with a process -> the task that ends the process and frees the tab's place."""
        self._closing = False

    def application(self) -> web.Application:
        """The aiohttp application with its routes and access control."""
        app = web.Application(middlewares=[self._admit])
        app.on_response_prepare.append(_with_headers)
        app.on_shutdown.append(self._close)
        app.add_routes([
            web.get("/", self._page),
            web.get("/static/{name}", self._file),
            web.get(f"/ws/{{scheme:{'|'.join(SCHEMES)}}}", self._socket, allow_head=False),
            web.get(f"/ws/{{scheme:{'|'.join(SCHEMES)}}}/{{name:[0-9a-f]{{32}}}}", self._socket, allow_head=False),
            # without HEAD, which aiohttp would add: a file can be taken only once
            web.get("/download/{key}", self._download, allow_head=False),
        ])
        return app

    # -- access control ------------------------------------------------------------------------------------------

    @web.middleware
    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        claims = BrowserClaims(
            hosts=tuple(request.headers.getall("Host", ())), origin=request.headers.get("Origin"),
            site=request.headers.get("Sec-Fetch-Site"), cookie=request.cookies.get(self.cookie),
            token=request.query.get("token") if request.path == "/" else None,
            websocket=request.path.startswith("/ws/"), now=self._clock(),
        )
        refusal = self._entrance.refusal(claims)
        if refusal is not None:
            return web.Response(status=refusal.status, text=f"{refusal.status}: {refusal.why}\n")
        if request.path == "/" and request.query_string:
            return self._redirect_to_page(claims)
        return await handler(request)

    def _redirect_to_page(self, claims: BrowserClaims) -> web.Response:
        """Redirects to the page at an address without the token, and sets a cookie that scripts cannot read."""
        if self._entrance.from_elsewhere(claims):
            response = web.Response(text=browser.ONWARD, content_type="text/html")
        else:
            # the redirect keeps the address with the token out of the browser's history
            response = web.Response(status=303, headers={"Location": "/"})
        if claims.token is not None:
            response.set_cookie(self.cookie, self._entrance.cookie, httponly=True, samesite="Strict", path="/",
                                secure=self._entrance.encrypted)
        return response

    # -- the page ------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.Response:
        return web.Response(text=browser.page(self._title), content_type="text/html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        found = browser.FILES.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        # the browser revalidates its copy each time (RFC 9111), so that no file is outdated after an update
        return web.FileResponse(found.place, headers={"Content-Type": found.content_type, "Cache-Control": "no-cache"})

    async def _download(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["key"]
        for tab in self.tabs:
            name = tab.files.take(key)
            if name is not None:
                return await _send_file(request, tab, key, name)
        raise web.HTTPNotFound(text="404: there is no such file, or it was already downloaded\n")

    # -- a tab ---------------------------------------------------------------------------------------------------

    def renew(self, entrance: Entrance) -> None:
        """Replaces the token and the cookie; open tabs stay."""
        self._entrance = entrance

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=PING, max_msg_size=MOST_BYTES, compress=False, timeout=GRACE)
        await socket.prepare(request)
        with suppress(ConnectionError):
            await socket.send_bytes(NO_CURSOR)
        try:
            async with asyncio.timeout(PATIENCE):
                again = await self._find_room(request.match_info.get("name", ""))
        except TimeoutError:
            why = f"there is no room for another tab (--sessions {self._most}): close one, then start again"
            self._tell(why)
            await _dismiss(request, socket, why, WSCloseCode.TRY_AGAIN_LATER)
            return socket
        if again is not None:
            await self._reopen_tab(again, socket, request)
        # no process was started, so nothing else frees the place
        elif self._closing or not await self._open_tab(socket, request):
            self._places.release()
        return socket

    async def _find_room(self, name: str) -> Tab | None:
        """Waits for a tab: the one that this page showed before, else the one that was left last; None if a place for a
        new tab was taken instead. A reloaded page connects before its old connection has closed, so its own tab is
        preferred."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE / 2):
                while self._idle and any(tab.name == name != "" and not tab.over.is_set() for tab in self.tabs):
                    own = next((tab for tab in self._unshown_tabs if tab.name == name), None)
                    if own is not None:
                        return self._take_back(own)
                    self._tab_left.clear()
                    await self._tab_left.wait()
        own_ended = any(each == name != "" for each, _ in self._ended_tabs)
        if not self._places.locked() and (own_ended or not self._unshown_tabs):
            # a page whose own tab has ended gets a new tab that begins at its place, not another page's tab;
            # a free place is taken without a wait, which could time out on a busy machine
            await self._places.acquire()
            return None
        while not self._unshown_tabs:
            place, other = asyncio.ensure_future(self._places.acquire()), asyncio.ensure_future(self._tab_left.wait())
            try:
                await asyncio.wait({place, other}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                if place.done():
                    self._places.release()
                raise
            finally:
                other.cancel()
                gone = place.done() or not place.cancel()
            if gone:
                return None
            self._tab_left.clear()
        return self._take_back(next(reversed(self._unshown_tabs)))

    def _take_back(self, tab: Tab) -> Tab:
        self._unshown_tabs.pop(tab).cancel()
        return tab

    async def _open_tab(self, socket: web.WebSocketResponse, request: web.Request) -> bool:
        """Starts a tab and shows it; returns whether a process was started, which frees the place when it ends."""
        name = request.match_info.get("name", "")
        place = self._place_left(name)
        tab = Tab(self._argv, request.match_info["scheme"], write_bytes=socket.send_bytes, write_str=socket.send_str,
                  environment={**self._environment, **({PLACE_VARIABLE: place} if place else {})}, name=name)
        try:
            await tab.start(_cells(request, "width", 80), _cells(request, "height", 24))
        except OSError as why:
            failure = f"no process could be started: {why.strerror or why}"
            self._tell(failure)
            await _dismiss(request, socket, failure, WSCloseCode.INTERNAL_ERROR)
            return False
        self.tabs[tab] = asyncio.create_task(self._end_tab(tab))
        if self._closing:
            tab.over.set()
        await self._show_until_end(tab, socket, request)
        return True

    def _place_left(self, name: str) -> str:
        """The place of this page's ended tab, else of the tab that ended last; empty if none has."""
        left = next((each for each in self._ended_tabs if each[0] == name != ""), None)
        left = left or (self._ended_tabs[-1] if self._ended_tabs else ("", ""))
        if left in self._ended_tabs:
            self._ended_tabs.remove(left)
        return left[1]

    async def _reopen_tab(self, tab: Tab, socket: web.WebSocketResponse, request: web.Request) -> None:
        """Shows a tab where it was left."""
        tab.name = request.match_info.get("name", "")
        with suppress(ConnectionError):
            await tab.attach(socket.send_bytes, socket.send_str, _cells(request, "width", 80),
                             _cells(request, "height", 24))
        await self._show_until_end(tab, socket, request)

    async def _show_until_end(self, tab: Tab, socket: web.WebSocketResponse, request: web.Request) -> None:
        """Shows the tab until its process ends or the browser leaves; then the process is kept for a while."""
        closing = asyncio.create_task(self._ends_socket(tab, request, socket))
        entrance, gone = self._entrance, False
        expiring = asyncio.create_task(self._expires(entrance, request, socket))
        try:
            gone = await _listen(request, socket, tab, lambda: self._clock() < entrance.until)
        finally:
            expiring.cancel()
            if gone and self._idle and not tab.over.is_set() and not self._closing:
                closing.cancel()
                with suppress(TimeoutError, ConnectionError):
                    async with asyncio.timeout(STALLED):
                        await tab.detach()
                self._unshown_tabs[tab] = asyncio.get_running_loop().call_later(self._idle, self._ends_idle, tab)
                self._tab_left.set()
            else:
                tab.over.set()
                await asyncio.shield(closing)  # a cancelled request must not prevent the end of the tab

    async def _expires(self, entrance: Entrance, request: web.Request, socket: web.WebSocketResponse) -> None:
        """Closes a page when the token that admitted it expires. Its tab stays for a page with a new token."""
        if entrance.until < inf:
            await asyncio.sleep(max(0.0, entrance.until - self._clock()))
            await _dismiss_expired(request, socket)

    def _ends_idle(self, tab: Tab) -> None:
        """Ends a tab to which no browser returned; the next tab begins at its place in the session."""
        if tab.place:
            self._ended_tabs.append((tab.name, tab.place))
        tab.over.set()

    async def _ends_socket(self, tab: Tab, request: web.Request, socket: web.WebSocketResponse) -> None:
        await tab.over.wait()
        leaving = self.tabs.get(tab)
        if leaving is not None:
            await asyncio.shield(leaving)
        await _dismiss(request, socket, tab.last_words or (SERVER_ENDED if self._closing else ""), WSCloseCode.OK)

    async def _end_tab(self, tab: Tab) -> None:
        """Waits until a tab's process has ended or must end, ensures that it ends, and frees its place."""
        await tab.over.wait()
        ending = self._unshown_tabs.pop(tab, None)
        if ending is not None:
            ending.cancel()
        try:
            await tab.stop()
        finally:
            del self.tabs[tab]
            self._places.release()
        for line in tab.last_words.splitlines():
            self._tell(line)

    async def _close(self, app: web.Application) -> None:
        """Ends every process: their sockets end with them."""
        self._closing = True
        leaving = list(self.tabs.values())
        for tab in self.tabs:
            tab.over.set()
        await asyncio.gather(*leaving)


async def _with_headers(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in browser.HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = browser.HEADERS["Server"]  # aiohttp has set its own name and version


async def _send_file(request: web.Request, tab: Tab, key: str, name: str) -> web.StreamResponse:
    """Sends a download; a file that is cut short ends it with an error, so that it does not look complete."""
    response = web.StreamResponse(headers={
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",  # RFC 8187
    })
    await response.prepare(request)
    async for chunk in tab.files.download(key):
        await response.write(chunk)
    if tab.files.is_whole(key):
        await response.write_eof()
    elif request.transport is not None:
        request.transport.abort()
    return response


async def _listen(request: web.Request, socket: web.WebSocketResponse, tab: Tab, in_time: Callable[[], bool]) -> bool:
    """Passes the page's frames to the process until either ends; returns whether the page ended normally."""
    async for message in socket:
        if not in_time():
            await _dismiss_expired(request, socket)
            return True
        try:
            if message.type is not WSMsgType.TEXT:
                raise browser.FrameError("expected text")
            frame = browser.frame_of(message.data)
        except browser.FrameError as why:
            await _dismiss(request, socket, str(why), WSCloseCode.POLICY_VIOLATION)
            return False
        try:
            async with asyncio.timeout(STALLED):
                await _act(frame, socket, tab)
        except (TimeoutError, ConnectionError):
            return False
    return socket.close_code not in (WSCloseCode.MESSAGE_TOO_BIG, WSCloseCode.PROTOCOL_ERROR)


async def _act(frame: browser.Frame, socket: web.WebSocketResponse, tab: Tab) -> None:
    match frame:
        case browser.InputFrame(data):
            await tab.send_bytes(data)
        case browser.SizeFrame(width, height):
            await tab.set_terminal_size(width, height)
        case browser.FocusFrame(here):
            await (tab.focus() if here else tab.blur())
        case browser.PingFrame(text):
            await socket.send_json(["pong", text])


async def _dismiss_expired(request: web.Request, socket: web.WebSocketResponse) -> None:
    await _dismiss(request, socket, "open the address that the server prints at SIGUSR1", EXPIRED)


async def _dismiss(request: web.Request, socket: web.WebSocketResponse, text: str, code: int) -> None:
    """Sends a last message, if there is one, and closes the socket, even if the browser does not read."""
    try:
        async with asyncio.timeout(GRACE):
            if text:
                await socket.send_json(["said", text])
            await socket.close(code=code)
    except (TimeoutError, ConnectionError, asyncio.CancelledError):
        # In aiohttp all writers of a socket wait for one future, so a cancelled write cancels the others.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        if request.transport is not None:
            request.transport.abort()


def _cells(request: web.Request, name: str, otherwise: int) -> int:
    try:
        return browser.cells(int(request.query[name]), name)
    except (KeyError, ValueError, browser.FrameError):
        return otherwise


# -- running the server ----------------------------------------------------------------------------------------------


async def run(
    server: AppServer, host: str, port: int, ready: Callable[[int], None], certificate: Certificate | None = None,
    renewed: Callable[[int], None] | None = None,
) -> None:
    """Listens until a signal ends it (SIGINT, SIGTERM, SIGHUP). `ready` is called with the port, and `renewed` too at
    each SIGUSR1. Raises `CallerError` if it cannot listen on the address."""
    ending = ending_signal()
    async with listening(server.application(), server.trouble, host, port, certificate=certificate, patience=HEAD_WAIT,
                         grace=GRACE) as bound:
        server.cookie = f"loop-inspector-{bound}"
        ready(bound)
        if renewed is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: renewed(bound))
        await ending.wait()
