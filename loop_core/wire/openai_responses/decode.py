"""Decodes OpenAI Responses, whole or streamed, into a `ChatResponse`.

This module reads events and decides how a response ended: if the last event's type, its status and its reason disagree,
the strictest counts. The final `response` object replaces earlier events; a call that it leaves out is kept as
unfinished. `items` reads the items; `table` has the stop words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loop_core.values import At, ChatResponse, Evidence, ProviderError, Stop, StopReason, Usage
from loop_core.wire.base import Decoder as BaseDecoder
from loop_core.wire.body import compact, mapping_of, string, token_count, value_at
from loop_core.wire.failures import read_error
from loop_core.wire.json_values import pointer
from loop_core.wire.openai_responses import table
from loop_core.wire.openai_responses.items import GrowingItem, call_id, is_call, read, streamed_items, with_omitted
from loop_core.wire.openai_responses.table import API


class Decoder(BaseDecoder):
    """The decoder of one Responses answer."""

    api = API
    stop_reasons = table.STOP_REASONS
    closing = (*BaseDecoder.closing, *(kind.encode() for kind in table.TERMINAL_EVENTS))

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._order: list[GrowingItem] = []
        self._earlier = 0
        """The number of items of earlier answers that did not end."""
        self._items: dict[Any, GrowingItem] = {}
        self._pieces: dict[tuple[Any, str, Any], list[str]] = {}
        self._last: Mapping[str, Any] = {}  # the latest `response` object
        self._has_end = False  # whether a terminal event or a whole body was read
        self._told_again = False  # whether the event that begins a response came once more under the same id
        self._next_began = False  # whether another response began after the end of this one
        self._pending: tuple[str | None, At | None] = None, None
        """The status of an unfinished response, and its place."""
        self._status: str | None = None
        self._reason: str | None = None
        """The `incomplete_details.reason` of the last response object, or JSON without that member; None if empty."""
        self._reason_path: tuple[str, ...] = ()
        self._cut_item: At | None = None
        """The place where an item of a completed response says that it is incomplete; None if none does."""
        self._payload = b""  # the bytes of the previous event
        self._next = -1  # the expected number of the next event; -1 before the first number
        self._first = 0  # the number of the first event of the answer
        self._counts = True
        """Whether the first two numbers are consecutive, as from a server that counts its events."""
        self._holder: tuple[str, ...] = ()
        """The path of the last `response` object in its event; empty in a whole body."""

    @property
    def is_over(self) -> bool:
        """Whether a terminal event was read; only imitators send `[DONE]` after it."""
        return self._has_end

    # -- events --------------------------------------------------------------------------------------------------

    def on_event(self, event: Any, name: str | None) -> bool | None:
        """Reads one event; the pieces of a text or a payload are only appended."""
        kind = event.get("type") or name or ""
        number = event.get("sequence_number")
        if number == self._next:
            self._next += 1
        elif self._came_twice(number):
            return False
        else:
            self._miscount(number, kind)
        self._payload = self.frame[0]
        if self._has_end and self._is_late(event, kind):
            self.after_end()
            return False
        row = table.DELTAS.get(kind)
        if row is not None:
            field, index = row
            key = (event.get("output_index"), field, event.get(index))
            pieces = self._pieces.get(key)
            if pieces is None:
                pieces = self._open(key, event)
            text = event["delta"]
            if type(text) is str:
                pieces.append(text)
            return index != "" if type(text) is str else None  # the pieces of a call have no index
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._item(event, kind)
        elif kind in table.DONES:
            field, index, value = table.DONES[kind]
            text = event.get(value)
            if type(text) is str:
                item = self._find(event, field)
                item.finals[field, _index(event.get(index))] = text
                item.begins.setdefault((field, True), self.frame[2])
        elif isinstance(event.get("response"), Mapping):
            if self._order and self._begins_another(event, kind):
                self._leave()
            self._told_again = self._told_again or bool(self._order and kind == table.BEGIN)
            self._response(event["response"], kind)
        elif kind == "error" or event.get("error") or event.get("object") == "error":
            self._failure(event)
        return None

    def _came_twice(self, number: Any) -> bool:
        """Whether an event repeats the previous one, as from broken routers: the same number and bytes, from a server
        that counts its events. Without numbers, as in other formats, two equal pieces in a row prove nothing."""
        if self.frame[0] != self._payload or not self._counts or not self._first < self._next - 1 == number:
            return False
        self._late = self.frame
        self.find(f"{API}.event_twice", "events came twice, with the same number; the second is left out", self.at())
        return True

    def _miscount(self, number: Any, kind: str) -> None:
        """Reads a number that is not the expected one. Inside a call, a piece of the call may then be missing or
        repeated, although its arguments may parse."""
        expected = self._next
        if type(number) is not int or not self._counts or kind == table.KEEPALIVE:
            return
        self._next = number + 1
        if expected < 0 or kind == table.BEGIN:
            self._first = number
            return
        if expected == self._first + 1:
            self._counts = False
            return
        open_calls = [item for item in self._order[self._earlier :] if not item.done and is_call(item.value)]
        if not open_calls:
            return
        for item in open_calls:
            item.gap = True
        if number > expected:
            lost = f"event {expected} is" if number == expected + 1 else f"events {expected} to {number - 1} are"
            self.find("openai_responses.event_missing", f"{lost} missing inside a call", self.at())
        else:
            message = f"event {number} comes after event {expected - 1} inside a call"
            self.find("openai_responses.event_repeated", message, self.at())

    def _is_late(self, event: Mapping[str, Any], kind: str) -> bool:
        """Whether an event after the end does not belong to the answer. A second end is read, since it may be stricter,
        unless it ends another response that began after this one (a file with the streams of several turns)."""
        self._next_began |= self._begins_another(event, kind)
        return self._next_began or (kind not in table.TERMINAL_EVENTS and kind != "error")

    def _begins_another(self, event: Mapping[str, Any], kind: str) -> bool:
        """Whether an event begins a response other than the announced one."""
        if kind != table.BEGIN or not self._last:
            return False
        return bool(mapping_of(event.get("response")).get("id") != self._last.get("id"))

    def _leave(self) -> None:
        """Leaves the calls of an unfinished answer open when another answer follows: a gateway asked again, and the
        status says nothing about the calls of the first answer."""
        self.find("openai_responses.second_answer", "another answer begins before the first one ended", self.at())
        for item in self._order[self._earlier :]:
            item.done = False
        self._earlier = len(self._order)
        self._told_again = False
        self._items.clear()
        self._pieces.clear()

    def _open(self, key: tuple[Any, str, Any], event: Mapping[str, Any]) -> list[str]:
        item = self._find(event, key[1])
        item.begins.setdefault((key[1], False), self.frame[2])
        pieces = self._pieces[key] = item.pieces.setdefault((key[1], _index(key[2])), [])
        return pieces

    def _find(self, event: Mapping[str, Any], field: str) -> GrowingItem:
        """The item that an event belongs to; an item that was never announced is created."""
        where, item_id = event.get("output_index"), event.get("item_id")
        item = self._items.get(where) or self._items.get(item_id)
        if item is None:
            self.find("openai_responses.unannounced_item", "an event names an item that was never announced", self.at())
            item = GrowingItem({"type": table.ITEM_OF_FIELD[field], "id": item_id}, b"{}", (), self.at(), False)
            self._keep(item, where, item_id)
        return item

    def _keep(self, item: GrowingItem, where: Any, item_id: Any) -> None:
        self._order.append(item)
        for key in (where, item_id):
            if key is not None:
                self._items[key] = item

    def _item(self, event: Mapping[str, Any], kind: str) -> None:
        value = event["item"]
        where, item_id = event.get("output_index"), value.get("id")
        at = self.at("item")
        old = self._items.get(where) or self._items.get(item_id)
        # The same item may be announced twice, but after a done item, or with another id, the index belongs to a new
        # item.
        if old is not None and kind.endswith("added") and (old.done or old.value.get("id") != item_id):
            self.find("openai_responses.index_reused", "two items have the same output_index", at)
            if self._told_again:
                self._leave()
            # Later pieces with this index belong to the new item.
            for key in [key for key in self._pieces if key[0] == where]:
                del self._pieces[key]
            old = None
        if old is None:
            self._keep(GrowingItem(value, self.frame[0], ("item",), at, kind.endswith("done")), where, item_id)
        elif kind.endswith("done"):
            old.replace(value, self.frame[0], ("item",), at)

    def _response(self, response: Mapping[str, Any], kind: Any) -> None:
        status = string(response.get("status"))
        if response.get("background") is True:
            self.background = True
        at = self.at("response", "status")
        terminal = table.TERMINAL_EVENTS.get(kind)
        if terminal is not None:
            self._finish(response, status, terminal, at)
        elif not self._has_end:
            self._last = response
            if status is None or status in table.PENDING:
                self._pending, self._status = (status, at), status
            else:
                self.find("openai_responses.early_status", f"an event before the last says {status[:40]!r}", at)

    def _finish(self, response: Mapping[str, Any], status: str | None, terminal: str, at: At) -> None:
        place: tuple[str, ...] = ("response", "status")
        if status is None and terminal:
            status, place = terminal, ("type",)
        # Some servers imitate the format badly (omlx PR#2817, hermes-agent #91770): the stricter word counts.
        elif terminal and status == "completed" != terminal:
            self.find("openai_responses.terminal_conflict", f"the last event says {terminal}, its status {status}", at)
            status, place = terminal, ("type",)
        elif status is not None and terminal == "completed" != status:
            self.find("openai_responses.terminal_conflict", f"the last event says {terminal}, not {status[:40]}", at)
        self._last, self._has_end = response, True
        self._end(status, place, "response")
        if isinstance(response.get("error"), Mapping):
            error = read_error({"error": response["error"]})
            if error is not None:
                self.error, self.error_at = error, self.at("response", "error")
        output = response.get("output")
        if isinstance(output, list) and output:  # empty from chatgpt.com (recorded): the events hold the items
            self._order = self._merge_items(output, ("response", "output"))

    def _end(self, status: str | None, place: tuple[str, ...], *holder: str) -> None:
        details = self._last.get("incomplete_details")
        inner = ("reason",) if isinstance(details, dict) and "reason" in details else ()
        said, self._reason_path = value_at(details, inner), ("incomplete_details", *inner)
        reason = said if isinstance(said, str) else compact(said) if said else None
        self._status, self._reason, self._holder = status, reason, holder
        self.raw, self.raw_at = status, self.at(*place)
        if status == "incomplete" and reason:
            self.raw, self.raw_at = f"{status}:{reason}", self.at(*holder, *self._reason_path)
        self.words_said.append((self.raw or "", self.raw_at))

    def _failure(self, event: Mapping[str, Any]) -> None:
        flat = {"message": event["message"], "code": event.get("code")} if event.get("message") else None
        status = event.get("status")  # the only place in a WebSocket
        error = read_error({"error": event.get("error") or flat}, status if type(status) is int else None)
        if error is None and event.get("type") == "error":
            error = ProviderError("")  # no details
        if error is not None:
            self.fail(error, self.at())

    # -- whole bodies --------------------------------------------------------------------------------------------

    def on_body(self, body: Any) -> None:
        """Reads a whole response."""
        if body.get("background") is True:
            self.background = True
        self._last, self._has_end = body, True
        self._end(string(body.get("status")), ("status",))
        output = body.get("output")
        if isinstance(output, list):
            self._order = self._merge_items(output, ("output",))

    def _merge_items(self, output: list[Any], path: tuple[str, ...]) -> list[GrowingItem]:
        """The items of the final response; each keeps what was streamed for it."""
        frame = self.frame[0]
        values = {index: value for index, value in enumerate(output) if isinstance(value, dict)}
        streamed = streamed_items(self._order, list(values.values()))
        merged: list[GrowingItem] = []
        for (index, value), before in zip(values.items(), streamed, strict=True):
            place = self.at(*path, index)
            item = before or GrowingItem(value, frame, (*path, index), place, True)
            if before is not None:
                item.replace(value, frame, (*path, index), place)
            merged.append(item)
        whole, omitted = with_omitted(self._order, merged)
        for item in omitted:
            if call_id(item.value):
                self.find("openai_responses.call_omitted", "the end leaves out a call that was streamed", item.at)
                item.done = False
            else:
                self.find("openai_responses.text_omitted", "the end leaves out a text that was streamed", item.at)
        return whole

    # -- the response --------------------------------------------------------------------------------------------

    def build(self) -> ChatResponse:
        """The response as far as it was read."""
        if not self._has_end:
            self.raw, self.raw_at = self._pending
        completed = self._has_end and self._status == "completed"
        answered = frozenset(key for item in self._order
                             if str(item.value.get("type")).endswith("_output") and (key := call_id(item.value)))
        parts: list[Any] = []
        refusals: list[str] = []
        for item in self._order:
            reading = read(item, completed, answered)
            parts.extend(reading.parts)
            if reading.refusal:
                refusals.append(reading.refusal)
            if reading.quirk is not None:
                self.find(reading.quirk[0], reading.quirk[1], item.at, reading.quirk[2])
            # A later status of the same item does not undo a cut.
            for value, at in [*item.wholes, (item.value, item.at)] if completed else ():
                if value.get("status") == "incomplete":
                    self._cut_item = at._replace(pointer=f"{at.pointer or ''}/status")
                    self.find("openai_responses.incomplete_item", "an item of a completed response is incomplete", at)
        native = self._native()
        stop = self._stop("".join(refusals), native)
        decided = stop.normalized is Stop.SAFETY_BLOCKED  # otherwise reported beside the deciding word
        if refusals and not decided:
            self.find(f"{API}.refusal", "a part of the answer is a refusal")
        if "content_filters.blocked" in native and not decided:
            self.find(f"{API}.content_filters.blocked", "a filter took something away", self._place("content_filters"))
        return ChatResponse(
            self.api, tuple(parts), stop,
            usage=_usage(self._last.get("usage")),
            id=string(self._last.get("id")),
            model=string(self._last.get("model")),
            refusal="".join(refusals) or None,
            native=native,
            # `in_progress` before the end is not a stop word.
            saw_stop_reason=self._has_end and bool(self.raw),
        )

    def _native(self) -> dict[str, str]:
        native: dict[str, str] = {}
        if self._status != "incomplete" and self._reason:
            native["incomplete_details.reason"] = self._reason
        if self._cut_item is not None:
            native["output.status"] = "incomplete"
        filters = self._last.get("content_filters")
        filter_results = filters if isinstance(filters, list) else []
        if any(isinstance(found, dict) and found.get("blocked") is True for found in filter_results):
            native["content_filters.blocked"] = "true"
        phases = [item.value.get("phase") for item in self._order if item.value.get("type") == "message"]
        if phases and all(phase == "commentary" for phase in phases):
            native["phase"] = "commentary"
        steer = value_at(self._last, ("error", "misalignment", "steer", "message"))
        if isinstance(steer, str):
            native["error.misalignment.steer.message"] = steer
        return native

    def _stop(self, refusal: str, native: Mapping[str, str]) -> StopReason:
        raw = self.raw
        if self.background and raw is not None and raw in table.BACKGROUND:
            row = table.BACKGROUND[raw]
            return StopReason(row.stop, raw, row.detail, (Evidence(f"{API}.background", self.raw_at, raw),))
        stop = self.map_word(raw, self.raw_at)
        if stop.normalized is not Stop.END_TURN:
            return stop
        word, at = None, None
        # Each of these contradicts `completed`, and the stricter word counts.
        if "incomplete_details.reason" in native:
            word, at = f"incomplete:{native['incomplete_details.reason']}", self._place(*self._reason_path)
        elif "content_filters.blocked" in native:
            word, at = "content_filters.blocked", self._place("content_filters")
        elif "output.status" in native:
            word, at = f"output.status:{native['output.status']}", self._cut_item
        elif refusal:  # also beside a text, as in Chat Completions: the requested content is missing
            word = "refusal"  # its place is that of the fact (`Format.rules`), which may be streamed in pieces
        if word is None:
            return stop
        row = table.STOP_REASONS.get(word, table.STOP_REASONS["incomplete"])
        evidence = Evidence(f"{API}.{word}", at, refusal[:200])
        return StopReason(row.stop, raw, row.detail, (*stop.evidence, evidence))

    def _place(self, *path: str) -> At:
        """The place of a member of the last `response` object."""
        if not self._holder or self.raw_at is None:
            return self.at(*path)
        return self.raw_at._replace(pointer=pointer(*self._holder, *path))


def _index(value: Any) -> int:
    return value if type(value) is int else 0


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    input_tokens, output_tokens, total = (
        token_count(usage.get(key)) for key in ("input_tokens", "output_tokens", "total_tokens"))
    out, into = usage.get("output_tokens_details"), usage.get("input_tokens_details")
    thought = token_count(out.get("reasoning_tokens")) if isinstance(out, dict) else None
    if (thought and input_tokens is not None and output_tokens is not None
            and total == input_tokens + output_tokens + thought):
        output_tokens += thought  # a server that counts thinking separately
    cached, written = (token_count(into.get(name)) if isinstance(into, dict) else None
                       for name in ("cached_tokens", "cache_write_tokens"))
    return Usage(input_tokens, output_tokens, thought, cached, written)
