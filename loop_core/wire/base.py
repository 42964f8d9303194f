"""The incremental decoder that every wire format builds on.

It parses each frame's JSON, and tracks byte offsets, transport facts, rate-limit quotas and errors of any shape. A
format subclasses `Decoder`, implements `on_event`, `on_body` and `build`, and has a table of stop words.

    bytes -> framing -> (payload, name, start, end) -> from_json -> on_event / on_body -> build -> ChatResponse

`close` always returns a `ChatResponse` once a JSON, SSE or frame body has begun; any other body raises `DecodeError`. A
broken frame in the middle becomes a finding; cut values stay unfinished.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from loop_core.json_parser import LENIENT_RULES, from_json, from_json_checked
from loop_core.values import (
    EMPTY,
    At,
    ChatResponse,
    Evidence,
    ExchangePart,
    Finding,
    ProviderError,
    ResponsePart,
    Severity,
    Stop,
    StopReason,
    TransportEnd,
    Usage,
)
from loop_core.wire import failures
from loop_core.wire.body import TRAILING, first_object, is_flat, mend_parts
from loop_core.wire.failures import Findings, ForeignWord, StopRow
from loop_core.wire.framing import SSE, Frame, Framing, Whole, framing_of, is_json, with_blank_lines
from loop_core.wire.json_values import NDJSON, JSONArray, byte_span, pointer, recorded_events, text_by_byte
from loop_core.wire.reads import UNREAD_CALL, See, continues_call, unread_values
from loop_core.wire.response_calls import each_call_once

STRETCH = 32_768
"""The number of bytes of a stream that are split into frames at a time, which limits the frames in memory."""
_FIRST_KEY_BYTES = 64  # the first key of a line is within so many bytes, blanks included
_OUTPUT = "choices", "step", "delta", "interaction"  # members of an event with output, of Chat and of Interactions
_MISSHAPEN = TypeError, AttributeError, KeyError, IndexError, ValueError, RecursionError  # they become findings


class Decoder:
    """Decodes one response: `feed` its bytes as they arrive, then `close`."""

    api: ClassVar[str] = ""
    stop_reasons: ClassVar[Mapping[str, StopRow]] = {}
    foreign_reasons: ClassVar[Mapping[str, ForeignWord]] = {}
    """Word before a colon -> how to read the word after it. Gateways between two formats send such pairs."""
    fold_case: ClassVar[bool] = False
    """Whether stop words are compared without regard to case (compatible servers send `STOP` and `Length`)."""
    object_framing: ClassVar[type[Framing]] = Whole
    """The framing of a body that begins with `{`."""
    array_framing: ClassVar[type[Framing]] = Whole
    """The framing of a body that begins with `[`."""
    binary_framing: ClassVar[type[Framing] | None] = None
    """The framing of a body that is not text; None if the format has no binary bodies."""
    line_mark: ClassVar[re.Pattern[bytes] | None] = None
    """The beginning of a body of JSON lines, in a format that frames other objects differently."""
    closing: ClassVar[tuple[bytes, ...]] = (b"[DONE]", b'"error')
    """Marks of a stream's end. Until one of them arrives, `is_over` and `may_be_over` are false."""
    reads_on: ClassVar[bool] = False
    """Whether events after the end mark are still read: a second stop reason or an error there may be stricter."""

    def __init__(
        self, *, http_status: int | None = None, headers: Sequence[tuple[str, str]] = (), n: int = 1,
        background: bool = False, words: Mapping[str, StopRow] | None = None,
    ) -> None:
        self.words = words or {}  # the profile's stop words, tried before the format's
        self.http_status, self.headers, self.n, self.background = http_status, headers, n, background
        self._failed = http_status is not None and http_status >= 400
        self.findings = Findings()
        self.error: ProviderError | None = None
        self.error_at: At | None = None
        self.raw: str | None = None
        self.raw_at: At | None = None
        self.words_said: list[tuple[str, At | None]] = []  # every stop word that came, in order
        self.id: str | None = None
        self.model: str | None = None
        self.usage: Usage | None = None
        self.native: dict[str, str] = {}
        self.saw_done = self.streaming = False
        self.size = self._blanks = 0  # all bytes, and the white space at the beginning
        self.cut = False  # the body ended inside a frame or a JSON value
        self._checks = False  # whether the next event is checked for repeated members
        self._opening: bytes | None = None  # the payload of the first frame except pings, which only name their kind
        self.frame: Frame = (b"", None, 0, 0)  # the event that is being read, or the whole body
        self._late: Frame | None = None  # the last event that does not belong to the answer
        self._begins_again = False  # whether another answer, or a part of one, began after the end
        self._framing: Framing | None = None
        self._head = b""

    # -- what a format implements --------------------------------------------------------------------------------

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one JSON value of a stream: an SSE payload, a line, an array element. Returns True for a further piece
        of a text, False for one of a call (checked for repeated members), else None."""
        raise NotImplementedError

    def on_body(self, body: Any) -> None:
        """Reads a whole JSON body."""
        raise NotImplementedError

    def build(self) -> ChatResponse:
        """Returns the response as far as it was read, with the reason to which the format's table maps the stop
        word."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Whether the last event of the format was read."""
        return self.saw_done

    @property
    def may_be_over(self) -> bool:
        """Whether the last event, a stop word or an error was read. An empty word ends nothing."""
        return self.is_over or bool(self.raw) or self.error is not None

    # -- what callers and formats use ----------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Reads the next bytes of the body, any number of them. Raises `DecodeError` if the body is neither JSON, nor
        SSE, nor a framing of this format."""
        self.size += len(data)
        framing = self._framing
        if framing is None:
            if not self._head and not data.strip():  # some servers send white space for minutes, which is not stored
                self._blanks += len(data)
                return
            self._head = self._head + data if self._head else b"\n" * self._blanks + with_blank_lines(data)
            if (framing := self._choose()) is None:
                return
            self._framing, data, self._head = framing, self._head, b""
        self._take(framing, data)

    def close(self, end: TransportEnd = TransportEnd.EOF) -> ChatResponse:
        """The response, as far as the bytes arrived. Raises `DecodeError` if they are not a body of this format."""
        if self._framing is None and self._head.strip():
            self._framing = self._choose(final=True)
            if self._framing is None:
                raise failures.no_body(self.api)
            self._take(self._framing, self._head)
        if self._framing is not None:
            self._take(self._framing, b"")
            self._frames(self._framing.flush(), last=True)
        if self.error is None and self._failed:
            self.fail(failures.event_error("", self.http_status), At(ExchangePart.HEADERS, pointer="status"))
        if isinstance(self._framing, SSE) and self._framing.single is not None:
            message = "events are separated by one line break instead of two: others read them as one event"
            self.find("frame.single_newline", message, At(ExchangePart.BODY, *self._framing.single))
        response = each_call_once(self.build(), self.find)
        if any(found.rule in LENIENT_RULES for found in self.findings):  # only there can a surrogate pair be split
            response = replace(response, parts=mend_parts(response.parts))
        return self._with_transport(response, end)

    def watch(self, body: bytes, see: See) -> None:
        """Passes every JSON value of a whole stream to `see`, with its name and place, in order, without decoding it.
        Raises `DecodeError` if the body is not a body of this format."""
        body = self._head = with_blank_lines(body)
        if (framing := self._choose(final=True)) is None:
            return
        frames = recorded_events(body) if type(framing) is Whole else (*framing.feed(body), *framing.flush())
        for payload, name, start, end in frames:
            with suppress(*_MISSHAPEN):  # not JSON, such as `[DONE]`, or of another shape
                see(from_json(payload), name, start, end)

    def seeing(self, see: See) -> None:
        """After this call, every JSON value of a stream that belongs to the answer is passed to `see` too."""
        read = self.on_event

        def both(event: Any, name: str | None) -> None:
            read(event, name)
            if self._late is not self.frame:
                see(event, name, *self.frame[2:])

        self.on_event = both  # type: ignore[method-assign]
        self.on_body = lambda body: None  # type: ignore[method-assign]

    def response(self, parts: Iterable[ResponsePart], stop: StopReason | None = None, **more: Any) -> ChatResponse:
        """Returns a response of these parts and of all other facts; `stop` replaces the mapped reason."""
        return ChatResponse(self.api, tuple(parts), stop or self.map_word(self.raw, self.raw_at), self.usage,
                            id=self.id, model=self.model, native=self.native, saw_stop_reason=bool(self.raw), **more)

    def find(self, rule: str, message: str, at: At | None = None, severity: Severity = Severity.WARNING) -> None:
        """Reports a quirk of the bytes, once per rule and message (`Findings`)."""
        self.findings.note(Finding(rule, severity, message, at))

    def check_types(self, event: Mapping[str, Any], name: str | None = None) -> None:
        """Reports the values of an event or a body that have a type which the format does not read."""
        for rule, message, path in unread_values(self.api, event, name) if self.error is None else ():
            self.find(rule, message, Decoder.at(self, *path))

    def after_end(self) -> None:
        """Reports an event after the end, which is not read: calls of a stream that is sent twice would run twice."""
        self._late = self.frame
        self.find("frame.after_end", "an event follows the end of the answer and is no part of it", self.at())

    def take_late_event(self, piece: object, begins: bool) -> bool:
        """Notes an event after the end; returns whether it may go on with a call: no other answer `begins` up to it."""
        self._begins_again = self._begins_again or begins
        return bool(piece) and not self._begins_again

    def end_with(self, word: str, at: At | None) -> None:
        """Notes a stop word; the last one counts, but an empty one never replaces another."""
        if word or not self.raw:  # Snowflake sends an empty reason (recorded)
            self.raw, self.raw_at = word, at
            self.words_said.append((word, at))

    def map_word(self, raw: str | None, at: At | None, *, rule: str | None = None) -> StopReason:
        """Maps a native word by the table; an absent or empty word is `interrupted`, an unknown one `unknown`."""
        if not raw:
            evidence = Evidence("absent", at or At(ExchangePart.BODY, self.size, self.size))
            return StopReason(Stop.INTERRUPTED, raw, None, (evidence,))
        row = self.words.get(raw) or self.stop_reasons.get(raw)
        if row is None and self.fold_case:
            folded = raw.casefold()
            row = self.words.get(folded) or self.stop_reasons.get(folded)
        if row is None and ":" in raw:  # gateways: `content_filter: RECITATION`
            row, rule = failures.foreign_row(raw, self.foreign_reasons, rule)
        if row is None:
            return StopReason(Stop.UNKNOWN, raw, None, (Evidence("unknown_word", at, raw),))
        return failures.mapped_reason(row.stop, raw, row.detail, rule or f"{self.api}.stop_reasons", at)

    def text(self) -> str:
        """The JSON text of the frame that is being read. Formats cut verbatim values out of it."""
        payload = self.frame[0]  # for ASCII the text in which `at` searches, so cached positions are used again
        return text_by_byte(payload) if payload.isascii() else payload.decode("utf-8", "replace").lstrip("\ufeff")

    def at(self, *path: str | int) -> At:
        """The place of the current event, or of a value in it; in a whole body, the value's own bytes."""
        span: tuple[int | None, int | None] = self.frame[2:]
        if path and not self.streaming:
            span = byte_span(self.frame[0], 0, *path) or (None, None)
        return At(ExchangePart.BODY, *span, pointer(*path) if path else None)

    def fail(self, error: ProviderError, at: At | None) -> None:
        """Records an error that the provider reported; the first one is kept."""
        if self.error is None:
            self.error, self.error_at = error, at

    def _choose(self, final: bool = False) -> Framing | None:
        """The framing of the body, chosen by its first bytes; None while there are too few."""
        if self.line_mark is not None and (head := self._head.lstrip()).startswith(b"{"):
            if len(head) < _FIRST_KEY_BYTES and not final:
                return None
            if self.line_mark.match(head):
                self.streaming = True
                return NDJSON()
        try:
            framing = framing_of(self._head, self.object_framing, self.array_framing, self.binary_framing,
                                 final=final, failed=(self.http_status or 0) >= 300)
        except ValueError:
            raise failures.no_body(self.api) from None
        self.streaming = framing is not None and type(framing) is not Whole
        return framing

    def _take(self, framing: Framing, data: bytes) -> None:
        if not isinstance(framing, JSONArray):
            stretch = max(1, len(data)) if type(framing) is Whole else STRETCH
            for start in range(0, len(data) or 1, stretch):
                self._frames(framing.feed(data[start : start + stretch]))
            return
        for payload, event, start, end in framing.values(data):
            if event is None or self.raw or self._opening is None:
                self._frames([(payload, None, start, end)])
                continue
            self.frame = payload, None, start, end
            self._read_event(event, None)

    def _frames(self, frames: Iterable[Frame], last: bool = False) -> None:
        if type(self._framing) is Whole:
            for self.frame in frames:  # one frame: the whole body
                if events := [] if self._failed else recorded_events(self.frame[0]):
                    self._framing, self.streaming = None, True
                    for event in events:
                        self._frames([event], last=event[3] == self.size)
                else:
                    self._body(self.frame[0])
            return
        for frame in frames:
            payload, name, _, _ = self.frame = frame
            unique = self._checks
            try:
                event = (from_json_checked if unique else from_json)(payload)
            except ValueError:
                unique = False
                if (event := self._parse_leniently(payload, last)) is None:
                    continue
            if payload == self._opening:  # the stream begins again, or before any stop word this may be a ping
                self.saw_done = self.saw_done or bool(self.raw)
                self._opening = payload if self.raw or not is_flat(event) else b""
            if type(event) is dict and (not self.saw_done or self.reads_on):  # nothing is read after the end mark
                if self._opening is None and any(event[key] for key in event if key not in ("type", "object")):
                    self._opening = payload
                self._read_event(event, name, unique)
            elif type(event) is not dict:
                if (error := failures.read_error(event, self.http_status)) is not None and not self.saw_done:
                    self.fail(error, self.at())
                else:
                    self.find(*failures.frame_without_members(payload), self.at())
            elif (error := failures.read_error(event, named=name == "error")) is not None:
                # OpenAI's clients stop reading at the mark (openai 3.54.0 _streaming.py): the answer stays whole.
                message = f"an error follows the end mark, at which clients stop reading: {error.message[:200]}"
                self.find("frame.error_after_end", message, self.at())
            elif payload == self._opening or any(map(event.get, _OUTPUT)):  # after [DONE]; pings are ignored
                self.after_end()
                if self.take_late_event(piece := continues_call(self.api, event, name), begins=not piece):
                    self.find(f"{self.api}.{UNREAD_CALL}", "a piece of a call follows the end of the answer", self.at())

    def _read_event(self, event: dict[str, Any], name: str | None, unique: bool = False) -> None:
        try:  # the check costs as much as parsing: pieces need none, and an event after others is parsed with it
            self._checks = not (piece := self.on_event(event, name))
            if piece is None and self._late is not self.frame:
                self.check_types(event, name)
        except _MISSHAPEN as why:
            self._checks = True
            self.find("frame.shape", f"a frame has an unexpected shape ({type(why).__name__})", self.at())
        if name == "error" and not (self.error and self.error.message):  # an error of unknown shape
            place = self.at(*event.keys() & {"error"})
            self.error, self.error_at = failures.event_error(event, self.http_status), place
        for message in failures.repetitions("frame", self.frame[0]) if self._checks and not unique else ():
            self.find("frame.repeated_member", message, self.at())

    def _parse_leniently(self, payload: bytes, last: bool) -> Any:
        stripped = payload.strip()
        if stripped in (b"", b"[DONE]"):  # OpenAI's end mark is not JSON
            self.saw_done = self.saw_done or bool(stripped)
            return None
        if self._checks and is_json(stripped):  # refused only by the checking parser
            return from_json(stripped)
        try:
            event = json.loads(payload.decode("utf-8", "replace"), strict=False)  # permits raw control characters
        except (ValueError, RecursionError):
            self.cut = self.cut or last
            self.find(*failures.unreadable_frame(stripped, last), self.at())
            return None
        self.find("frame.lenient", "a frame holds invalid UTF-8 or control characters", self.at())
        return event

    def _body(self, payload: bytes) -> None:
        whole, text = self.at(), payload.lstrip(b"\xef\xbb\xbf \t\r\n")  # the parser counts lines from its first byte
        try:
            body = from_json_checked(text)
        except ValueError as why:
            text, rest = first_object(text)
            try:
                body = json.loads(text.decode("utf-8", "replace"), strict=False)
                if rest:
                    self.find("body.trailing", TRAILING, At(ExchangePart.BODY, self.size - len(rest), self.size))
                for message in failures.repetitions("body", text):  # parsers differ in which value counts
                    self.find("body.repeated_member", message, whole)
                if not is_json(text):
                    self.find("body.lenient", "the body holds invalid UTF-8 or control characters", whole)
            except (ValueError, RecursionError):
                if self._failed:
                    page = payload.decode("utf-8", "replace").strip()[:2000]
                    self.fail(failures.read_error(page, self.http_status) or ProviderError(page), whole)
                    return
                self.cut = True
                self.find("body.cut", f"the body is not a complete JSON value ({str(why)[:120]})", whole)
                return
        if (error := failures.read_error(body, self.http_status)) is not None:
            named = isinstance(body, dict) and "error" in body
            self.fail(error, self.at("error") if named else whole._replace(pointer=""))
        if isinstance(body, dict):
            try:
                self.on_body(body)
                self.check_types(body)
            except _MISSHAPEN as why:
                self.find("body.shape", f"the body has an unexpected shape ({type(why).__name__})", whole)
        elif error is None:
            self.find("body.no_object", "the body is not a JSON object", whole)

    def _with_transport(self, response: ChatResponse, end: TransportEnd) -> ChatResponse:
        stops = [self.map_word(word, at) for word, at in self.words_said if word]
        stop = failures.keep_earlier(response.stop_reason, stops, f"{self.api}.earlier_reason")
        sent_on = failures.redirect(self.http_status, self.headers)
        end_at = At(ExchangePart.BODY, self.size, self.size)
        if sent_on is not None and not response.parts and not stop.raw:
            self.error, stop = sent_on
            self.findings.clear()  # if there is a body, it is a page about the redirect
        elif self.error is not None and (self._failed or stop.normalized is not Stop.SAFETY_BLOCKED):
            stop = failures.error_reason(self.error, self.error_at, stop)
        elif end is TransportEnd.CUT and stop.normalized is Stop.INTERRUPTED:
            stop = failures.recording_cut(stop, end_at)
        elif self.cut and stop.raw is None:
            stop = stop._replace(evidence=(*stop.evidence, Evidence("cut", end_at)))
        return replace(response, stop_reason=stop, streaming=self.streaming, http_status=self.http_status,
                       error=self.error, native=response.native or EMPTY, transport_end=end, size=self.size,
                       saw_done=self.saw_done or (self.streaming and self.is_over and response.saw_stop_reason),
                       quota_metadata=failures.read_quota(self.headers), findings=tuple(self.findings))
