"""Records the traffic between an agent and its providers: a reverse proxy on this machine that writes a session file.

The first part of a path names the provider's host, as in `/api.openai.com/v1/responses`, and the proxy asks no hosts
but those it was given. Bytes are passed on as they arrive, and each piece is written before the client gets it.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from inspector.live.recorder import Recorder, now
from inspector.live.upstreams import Upstreams, environment_proxy
from inspector.provider.hosts import UNKNOWN_HOST, address, is_own_host, url_host
from inspector.provider.listener import ProblemLog, break_off, ending_signal, listening
from inspector.report.lines.spans import one_line
from inspector.sessions import redact
from inspector.sessions.intake import Room, unpack
from loop_core.client.address import SECRET_NAME, loopback
from loop_core.client.exchange import MASK_CONTEXT
from loop_core.client.incoming import ChecksumError, ContentDecodeError, ContentDecoder
from loop_core.client.mask import Mask
from loop_core.errors import CallerError, words_of
from loop_core.json_parser import from_json
from loop_core.values import TransportEnd

NO_PROXY = ("NO_PROXY", "no_proxy")
_WITHOUT_VERSION = re.compile(r"^((?:/(?!v\d)[^/?]*)*?)(/messages)(?=\?|$)")
"""A path of Anthropic's API without a version. Vercel's provider for Anthropic, which opencode uses, appends
`/messages` to ANTHROPIC_BASE_URL; other clients append `/v1/messages`."""


# -- One exchange ----------------------------------------------------------------------------------------------------

MOST_BYTES = 512 * 1024 * 1024
"""The largest request body. An agent sends its whole history, with pictures, in every request."""
MOST_BINARY = 1024 * 1024
"""The largest request body that is recorded although it is not text, such as a small picture. Audio is not."""
CONNECT_SECONDS = 30
"""How long a host may take to accept a connection. The client decides how long it waits for an answer."""
HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
                        "te", "trailer", "transfer-encoding", "upgrade"})
"""Headers that are about one connection (RFC 9110, section 7.6.1)."""
REPLACED = frozenset({"host", "accept-encoding", "expect"})
"""Headers of a request that the proxy sets itself. It asks for an answer without a content coding."""
MOST_RECORDED = 32 * 1024 * 1024
"""The most bytes of a compressed answer that are recorded, unpacked: a few bytes may unpack to gigabytes."""
TOO_LARGE = "packed more than {:,} bytes, and the rest is not recorded"
LINES: Mapping[str, Any] = {"max_line_size": 1 << 16, "max_field_size": 1 << 16}
"""The longest lines of a head, above what servers accept."""
HANDLING: Mapping[str, Any] = {"handler_cancellation": True, "auto_decompress": False, **LINES}
"""How aiohttp handles the requests of clients: it cancels one whose client leaves, and bodies stay coded."""
UPGRADE = (426, "the recording proxy does not carry WebSockets; send the request over HTTP")
Headers = list[tuple[str, str]]


class Proxy:
    """The proxy as an aiohttp application, `app`. `say` is called with one line about every exchange."""

    def __init__(self, upstreams: Upstreams, recorder: Recorder, say: Callable[[str], None]) -> None:
        self._upstreams, self._recorder, self._say = upstreams, recorder, say
        self.requests = 0
        """The number of requests that were passed on."""
        self.app = web.Application(client_max_size=MOST_BYTES)
        self.app.router.add_route("*", "/{path:.*}", self.answer)
        self.app.cleanup_ctx.append(self._connect)

    async def _connect(self, _app: web.Application) -> Any:
        # It adds nothing to a request: no cookies, no header of aiohttp, and no password from a .netrc file.
        async with aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("user-agent", "accept", "content-type"),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            connector=aiohttp.TCPConnector(limit=0), auto_decompress=False, **LINES,
        ) as self._session:
            yield

    async def answer(self, http: web.Request) -> web.StreamResponse:
        """Passes on one request and its answer."""
        if not is_own_host(http.headers.getall("host", ())):
            return _refusal(*UNKNOWN_HOST)
        if not _from_here(http.headers):
            return _refusal(403, "pages of other sites cannot use the recording proxy")
        if http.headers.get("upgrade", "").lower() == "websocket":
            return _refusal(*UPGRADE)
        host, _, path = http.raw_path.removeprefix("/").partition("/")
        origin = self._upstreams.origins.get(host)
        if origin is None:
            return _refusal(404, f"expected a path that begins with one of {', '.join(self._upstreams.origins)}")
        path = _WITHOUT_VERSION.sub(r"\1/v1\2", f"/{path}", count=1)
        body = await http.read()
        self.requests += 1
        return await _Exchange(self.requests, http, origin + path, body, self._recorder, self._say).run(self._session)


def _refusal(status: int, why: str) -> web.Response:
    """An answer of the proxy itself, in the form in which most SDKs find the message."""
    error = {"message": f"inspector record: {why}", "type": "recording_proxy"}
    return web.json_response({"error": error}, status=status)


def _from_here(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from no page, or from a page of this machine. A page of another site could otherwise use
    a local model through the proxy."""
    origin = headers.get("origin")
    try:
        if origin is None:  # browsers send none for the address of a picture
            return headers.get("sec-fetch-site", "") not in ("cross-site", "same-site")
        return loopback(urlsplit(origin).hostname or "")
    except ValueError:
        return False


class _ClientLeftError(Exception):
    """The client has closed its connection."""


@contextmanager
def _client_is_there() -> Iterator[None]:
    """Tells an error of the client's connection from one of the provider's, which has the same type."""
    try:
        yield
    except ConnectionError:
        raise _ClientLeftError from None


class _Exchange:
    """One request, and its answer while it is passed on."""

    def __init__(
        self, number: int, http: web.Request, url: str, body: bytes, recorder: Recorder, say: Callable[[str], None],
    ) -> None:
        self._number, self._http, self._url, self._body = number, http, url, body
        self._recorder, self._say = recorder, say
        self._headers = _headers(http.raw_headers)
        secrets = _secrets(self._headers, url)
        self._mask, self._known = Mask(secrets, redact.body), Mask(secrets)
        self._before, self._size, self._recorded_size = b"", 0, 0
        self._coding: ContentDecoder | None = None
        self._most: int | None = None
        self._packed_pieces: list[bytes] = []  # the bytes of an answer whose coding is undone at its end
        self._loss, self._lost_end = "", TransportEnd.CUT  # why the rest of the answer is not recorded, and its end
        self._start = time.monotonic()

    async def run(self, session: aiohttp.ClientSession) -> web.StreamResponse:
        """Sends the request and passes on the answer; the recording says how it ended."""
        self._write({"type": "request", "url": self._mask.text(self._url), "method": self._http.method,
                     "headers": self._mask_headers(self._headers), **self._recorded_body()}, "id")
        end, problem, status = TransportEnd.ABORTED, "the client left, or the recording was ended", 0
        headers, hard = Headers(), False
        response: web.StreamResponse | None = None
        try:
            dropped = HOP_BY_HOP | REPLACED | _header_names(self._headers)
            sent = [(name, value) for name, value in self._headers if name.lower() not in dropped]
            async with session.request(
                self._http.method, URL(self._url, encoded=True), headers=[*sent, ("accept-encoding", "identity")],
                data=BytesIO(self._body) if self._body else None, allow_redirects=False,
                proxy=environment_proxy(self._url),
            ) as answer:
                headers, status = _headers(answer.raw_headers), answer.status
                if status < 100:
                    raise aiohttp.ClientResponseError(answer.request_info, ())
                coding = ",".join(answer.headers.getall("content-encoding", ())).lower()
                self._most = MOST_RECORDED if coding not in ("", "identity") else None
                with suppress(ContentDecodeError):
                    self._coding = ContentDecoder(coding) if "deflate" not in coding else None  # it may be raw deflate
                self._write({"type": "response", "status": status, "headers": self._mask_headers(headers)})
                response = web.StreamResponse(status=status, reason=answer.reason, headers=_passed_on(headers))
                with _client_is_there():
                    await response.prepare(self._http)
                async for data in answer.content.iter_any():
                    self._size += len(data)
                    self._take(data)
                    with _client_is_there():
                        await response.write(data)
                end, problem = TransportEnd.EOF, ""
        except _ClientLeftError:
            pass
        except (aiohttp.ClientError, OSError) as why:  # a timeout is an OSError too
            end = TransportEnd.TIMEOUT if isinstance(why, TimeoutError) else TransportEnd.RESET
            problem = _problem(why, urlsplit(self._url).netloc)
            hard = "ConnectionReset" in f"{why!r} {why.__cause__!r}"  # of a chunked body aiohttp says it in words only
        finally:  # also when the client left, which cancels this task
            if self._packed_pieces:
                self._unpack(headers, whole=end is TransportEnd.EOF)
            self._record(self._mask.flush())
            about = {"problem": self._mask.text(self._loss or problem)} if self._loss or problem else {}
            self._write({"type": "end", "end": self._lost_end.value if self._loss else end.value, "ms": self._ms,
                         **about})
            url = redact.url(self._mask.text(self._url))
            self._say(one_line(f"{self._http.method} {url}: {status or 'no answer'}, {self._size:,} bytes in "
                               f"{self._ms / 1000:.1f} s, {end.value}"))
        if response is None:
            return _refusal(502, problem)
        if end is TransportEnd.EOF:
            await response.write_eof()
        else:
            await break_off(self._http, hard=hard)  # a cut answer is passed on as one
        return response

    @property
    def _ms(self) -> float:
        return round((time.monotonic() - self._start) * 1000, 3)

    def _write(self, record: Mapping[str, Any], name: str = "request") -> None:
        time_of = {} if record["type"] == "end" else {"at": now()}
        self._recorder.write({**record, name: f"r{self._number}", **time_of})

    def _take(self, data: bytes) -> None:
        """Records the next bytes of the body, without their content coding if it can be undone while they arrive."""
        if self._loss:
            return
        try:
            for piece in (data,) if self._coding is None else self._coding.feed(data):
                self._recorded_size += len(piece)
                if self._most is not None and self._recorded_size > self._most:
                    raise ContentDecodeError(TOO_LARGE.format(self._most))
                if self._coding is None:
                    self._packed_pieces.append(piece)
                else:
                    self._record(self._mask.feed(piece))
        except ContentDecodeError as why:
            self._lost_end = TransportEnd.DAMAGED if isinstance(why, ChecksumError) else TransportEnd.CUT
            self._loss, self._packed_pieces = f"{urlsplit(self._url).netloc} {why}", []

    def _unpack(self, headers: Headers, whole: bool) -> None:
        """Records the body of an answer whose coding is undone at its end."""
        packed, self._packed_pieces = b"".join(self._packed_pieces), []
        self._coding, self._recorded_size = ContentDecoder(""), 0
        plain = unpack(packed, headers, room := Room(MOST_RECORDED))
        if isinstance(plain, str) or plain == packed:  # credentials in it could not be found
            why = TOO_LARGE.format(MOST_RECORDED) if room.left < 0 else "sent content that cannot be decoded"
            # The beginning of an answer that broke off may hold nothing yet.
            self._loss = f"{urlsplit(self._url).netloc} {why}" if whole or room.left < 0 else ""
        else:
            self._take(plain)

    def _record(self, data: bytes) -> None:
        """Records the next bytes of the body, credentials masked."""
        if data:
            self._recorder.on_data(self._number, self._mask.mask_credentials(data, self._before), self._ms)
            self._before = (self._before + data)[-MASK_CONTEXT:]

    def _mask_headers(self, headers: Headers) -> list[list[str]]:
        return [[name, self._mask.text(value)] for name, value in headers]

    def _recorded_body(self) -> dict[str, Any]:
        """The member of the request's record that holds its body."""
        body = unpack(self._body, self._headers)
        if not body or isinstance(body, str):  # damaged, so credentials in it could not be found
            return {}
        # The recorder masks all that looks like a credential; a second search of a whole history would take time.
        try:
            return {"body": self._known.json(from_json(body))}
        except ValueError:
            pass
        try:
            return {"text": self._known.text(body.decode())}
        except UnicodeDecodeError:
            return {} if len(body) > MOST_BINARY else {
                "base64": b64encode(self._known.feed(body) + self._known.flush()).decode()}


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name.decode("latin-1"), _header_text(value)) for name, value in raw]


def _header_text(value: bytes) -> str:
    try:
        return value.decode()  # aiohttp writes it in UTF-8 again
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _header_names(headers: Headers) -> frozenset[str]:
    """The headers that `Connection` names: they are about one connection too (RFC 9110, section 7.6.1)."""
    return frozenset(word.strip().lower() for name, value in headers if name.lower() == "connection"
                     for word in value.split(","))


def _passed_on(headers: Headers) -> CIMultiDict[str]:
    """The headers of an answer for the client."""
    dropped = HOP_BY_HOP | _header_names(headers)
    return CIMultiDict((name, value) for name, value in headers if name.lower() not in dropped)


def _secrets(headers: Headers, url: str) -> list[str]:
    """The credentials of a request, which its answer may repeat."""
    words = [word for name, value in headers if _carries_secret(name) for word in re.split(r"[\s;,]+", value)]
    # In `NAME=VALUE` of a cookie the value alone is one too; the name is not, since it may be an ordinary word.
    words += [part for word in words for part in (word.partition("=")[2].strip('"'), _password(word))]
    # A signature of AWS lists names of headers. `content-type` is also a word in each frame of its answers, and a mask
    # would make the frame's checksum wrong.
    names = {name.lower() for name, _ in headers}
    return [*(word.rstrip("=") for word in words if word not in names),
            *(value for name, value in parse_qsl(urlsplit(url).query) if _carries_secret(name))]


def _password(word: str) -> str:
    """The password in the word after `Basic`; empty for others."""
    try:
        return b64decode(word, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _carries_secret(name: str) -> bool:
    return SECRET_NAME.search(name) is not None or redact.secret_name(name) or name.lower() in redact.QUERY


FAILURES: Sequence[tuple[type[BaseException], str]] = (
    (TimeoutError, "{host} took too long to accept the connection"),
    (aiohttp.ClientProxyConnectionError, "cannot connect to the proxy that the environment names: {why}"),
    # Without aiohttp's words, which hold the URL of the proxy and so its password.
    (aiohttp.ClientHttpProxyError, "the proxy that the environment names does not lead to {host}"),
    (aiohttp.ClientConnectorError, "cannot connect to {host}: {why}"),
    (aiohttp.ServerDisconnectedError, "{host} closed the connection without an answer"),
    (aiohttp.ClientPayloadError, "{host} closed the connection before the body was complete"),
    (aiohttp.ClientResponseError, "{host} sent what cannot be read as HTTP/1.1"),
)
"""The exceptions that end an answer, and their words; the first row that fits counts."""


def _problem(why: BaseException, host: str) -> str:
    """What went wrong with the provider's answer."""
    words = next((words for kind, words in FAILURES if isinstance(why, kind)), "{host}: {why}")
    cause = why.strerror if isinstance(why, OSError) and why.strerror else words_of(why)
    if isinstance(why, OSError) and (why.errno or 0) > 1:  # asyncio's own words repeat the address; SSL counts as 1
        cause = os.strerror(why.errno or 0)
    return words.format(host=host, why=" ".join(cause.split()))


# -- Until the program ends ------------------------------------------------------------------------------------------


class Traffic(NamedTuple):
    """The end of a recording."""

    requests: int
    code: int
    """The exit code of the program that was run; 0 without one."""


def record(
    command: Sequence[str], listen: str, upstreams: Upstreams, recorder: Recorder, say: Callable[[str], None],
    show: Callable[[str], None],
) -> Traffic:
    """Records until the program with the words of `command` ends; without a command until an interrupt or a
    termination signal: then `show` gets the variables as lines for a shell, and `say` a line about every exchange.
    Raises `CallerError` if the address cannot be used, or the program cannot start."""
    host, port = address(listen)
    for origin in upstreams.origins.values():
        environment_proxy(origin)  # reports one that cannot be used
    proxy = Proxy(upstreams, recorder, (lambda _: None) if command else say)
    late: list[str] = []  # the terminal belongs to the program while it runs
    problems = ProblemLog(late.append if command else lambda line: say(one_line(line)))

    async def run() -> int:
        async with listening(proxy.app, problems, host, port, patience=3600, grace=0.5, **HANDLING) as bound:
            variables = upstreams.variables(f"http://{url_host(host)}:{bound}")
            if command:
                return await _run_program(command, variables)
            show("".join(f"export {name}={url}\n" for name, url in variables.items()))
            say(f"recording agents with these variables in {recorder.path} until Ctrl-C")
            await ending_signal().wait()
            return 0

    code = asyncio.run(run())
    for line in late:
        say(one_line(line))
    return Traffic(proxy.requests, code)


async def _run_program(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Runs a program with these environment variables until it ends; returns its exit code, in a shell's form."""
    local = {name: ",".join(filter(None, (os.environ.get(name), "127.0.0.1", "::1"))) for name in NO_PROXY}
    loop = asyncio.get_running_loop()
    # The terminal sends Ctrl-C to the program as well, and the program decides what it means.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    try:
        process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **local, **variables})
    except OSError as why:
        raise CallerError(f"{command[0]}: {why.strerror or why}") from None
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, process.send_signal, number)
    return code if (code := await process.wait()) >= 0 else 128 - code
