"""Decodes Gemini Interactions, an event stream or a whole body, into a `ChatResponse`: each step is read into parts.

This module decides which members of a step become parts and which stay verbatim, and which status counts (that of the
last interaction object, never of an unfinished one). It also reads usage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from loop_core.values import (
    ArgsForm,
    At,
    ChatResponse,
    OpaquePart,
    ProviderError,
    ReasoningPart,
    ResponsePart,
    Severity,
    TextPart,
    ToolCall,
    Usage,
)
from loop_core.wire import base
from loop_core.wire.body import compact, conflicting_arguments, list_of, mapping_of, misfits_type, token_count, word
from loop_core.wire.failures import read_error
from loop_core.wire.gemini_interactions import table
from loop_core.wire.gemini_interactions.table import API
from loop_core.wire.json_values import slice_of
from loop_core.wire.reads import UNREAD_CALL, may_be_call, unread_rule
from loop_core.wire.response_calls import StreamedPart, compare, open_places

Slice = Callable[..., str | None]
"""A function that returns the verbatim JSON at a path inside a step; None if there is none."""


class GrowingStep(StreamedPart):
    """A step of a stream while it arrives."""

    __slots__ = ("fields", "grown", "holder", "notes", "signature", "source", "type")

    def __init__(self, fields: Mapping[str, Any], source: str, holder: str, start: int, orphan: bool = False) -> None:
        super().__init__(start, orphan=orphan)
        self.type = str(fields.get("type"))
        self.fields, self.source, self.holder = dict(fields), source, holder
        self.notes: list[Any] = []
        self.signature = word(fields.get("signature"))
        self.grown = False

    def extend(self, delta: Mapping[str, Any]) -> bool:
        """Reads a delta; returns False if it does not belong to a step of this type."""
        kind, text = delta.get("type"), delta.get("text")
        if kind == "text" and self.type in (table.OUTPUT, "text") and isinstance(text, str):
            self.append(text)
        elif kind == "text_annotation_delta" and self.type in (table.OUTPUT, "text"):
            notes = delta.get("annotations")
            self.notes += notes if isinstance(notes, list) else []
        elif kind == "arguments_delta" and self.type == table.CALL:
            piece = delta["arguments"]  # without it the frame has an unexpected shape
            if not isinstance(piece, str | None) and any(self.chunks):
                return False  # inside a text its JSON would parse as a part of that text
            if piece is not None:
                self.append(piece if isinstance(piece, str) else compact(piece))
        elif kind == "thought_signature" and self.type == table.THOUGHT:
            self.signature = word(delta.get("signature")) or self.signature
        elif kind == "thought_summary" and self.type == table.THOUGHT:
            content = delta.get("content")
            if not isinstance(content, Mapping) or not isinstance(content.get("text"), str):
                return False
            self.append(content["text"])
        elif kind == self.type or (self.type == table.OUTPUT and kind in table.CONTENTS):
            self._grow(delta)
        else:
            return False
        return True

    def _grow(self, delta: Mapping[str, Any]) -> None:
        """Applies a delta to a step or a content that is kept verbatim: members are set, and strings of data grow."""
        self.grown = True
        holder: dict[str, Any] = self.fields
        if self.type == table.OUTPUT:
            contents = holder.setdefault("content", [])
            if not contents or contents[-1].get("type") != delta.get("type"):
                contents.append({"type": delta.get("type")})
            holder = contents[-1]
        for name, value in delta.items():
            before, holder[name] = holder.get(name), value
            if name == "data" and isinstance(before, str) and isinstance(value, str):
                before += value  # grows in place, as there is no other reference
                holder[name] = before

    def parts(self, limit: int) -> list[ResponsePart]:
        """The parts of the step; a call that never ended reaches to `limit`."""
        text = "".join(self.chunks)
        if self.type == table.CALL:
            return [self._call(text, limit)]
        if self.type == table.THOUGHT:
            return [ReasoningPart(_summary(self.fields) + text, self.signature)]
        parts = read_step(self.fields, True, At(), lambda *path: None if self.grown else
                          slice_of(self.source, self.holder, *path))
        if self.type not in (table.OUTPUT, "text"):
            return parts
        notes = [OpaquePart(table.NOTES, compact(self.notes))] if self.notes else []
        return [*parts, *([TextPart(text)] if text or notes else []), *notes]

    def _call(self, text: str, limit: int) -> ToolCall:
        first_arguments = self.fields.get("arguments")
        form = ArgsForm.STRING
        unsent = False
        arguments: str | None = text
        if not text and isinstance(first_arguments, str):
            arguments = first_arguments
        elif not text and first_arguments is None:
            arguments = None
        elif not text and (first_arguments or self.closed):
            # In an open call `{}` means that no arguments have arrived; as arguments it would be a complete call.
            arguments = slice_of(self.source, self.holder, "arguments") or compact(first_arguments)
            form, unsent = ArgsForm.OBJECT, not first_arguments
        return ToolCall(word(self.fields.get("id")), word(self.fields.get("name")) or "", arguments,
                        self.closed and not self.orphan, form=form, signature=self.signature, arguments_unsent=unsent,
                        other_arguments=conflicting_arguments(first_arguments, text) if text else None,
                        at=self.place(limit, f"/{self.holder}"))


def read_step(fields: Mapping[str, Any], closed: bool, at: At, slice_at: Slice) -> list[ResponsePart]:
    """The parts of one step of a whole body."""
    kind = str(fields.get("type"))
    if kind == table.CALL:
        return [_whole_call(fields, closed, at, slice_at)]
    if kind == table.THOUGHT:
        return [ReasoningPart(_summary(fields), word(fields.get("signature")))]
    if kind == table.OUTPUT:
        content = fields.get("content")
        if misfits_type(content, list):
            return _content(content, slice_at("content"))
        contents = enumerate(list_of(content))
        return [part for index, content in contents for part in _content(content, slice_at("content", index))]
    if kind == "text" and isinstance(fields.get("text"), str):  # once, outputs were contents
        return _content(fields, slice_at())
    if kind == "text":
        return []
    return [OpaquePart(kind, slice_at() or compact(fields))]


def _content(content: Any, source: str | None) -> list[ResponsePart]:
    if isinstance(content, str):
        return [TextPart(content)]
    if not isinstance(content, Mapping):  # kept as it came
        return [OpaquePart(f"{table.INSIDE}None", source or compact(content))] if content else []
    text, notes = content.get("text"), content.get("annotations")
    if content.get("type") == "text" and isinstance(text, str):
        return [TextPart(text), *([OpaquePart(table.NOTES, compact(notes))] if notes else [])]
    return [OpaquePart(f"{table.INSIDE}{content.get('type')}", source or compact(content))]


def _whole_call(fields: Mapping[str, Any], closed: bool, at: At, slice_at: Slice) -> ToolCall:
    member = fields.get("arguments")
    string = isinstance(member, str)
    arguments = member if string else None if member is None else slice_at("arguments") or compact(member)
    return ToolCall(word(fields.get("id")), word(fields.get("name")) or "", arguments, closed,
                    form=ArgsForm.STRING if string else ArgsForm.OBJECT, signature=word(fields.get("signature")), at=at)


def _summary(fields: Mapping[str, Any]) -> str:
    """The text of a thought, joined from the pieces of its summary."""
    pieces = map(mapping_of, list_of(fields.get("summary")))
    return "".join(piece["text"] for piece in pieces if isinstance(piece.get("text"), str))


# -- Events and bodies -----------------------------------------------------------------------------------------------


# Such a step stays open, because its name and id never came.
STEP_OF_DELTA: Mapping[str, str] = {
    "text": table.OUTPUT, "arguments_delta": table.CALL, "thought_signature": table.THOUGHT,
    "thought_summary": table.THOUGHT,
}
"""Type of a delta without a step -> the type that its step must have."""


_OF_STEPS = frozenset({*table.STARTS, *table.DELTAS, *table.STOPS})


class Decoder(base.Decoder):
    """The decoder of one interaction."""

    api = API
    stop_reasons = table.STOP_REASONS
    closing = (*base.Decoder.closing, *(kind.encode() for kind in sorted(table.LAST_EVENTS)))

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._order: list[GrowingStep] = []
        self._open: dict[Any, GrowingStep] = {}
        self._indexes: set[Any] = set()  # the indexes of the steps so far
        self._told_again = False  # the event that begins the interaction came once more with the same id
        self._parts: list[ResponsePart] = []  # of a whole interaction
        self._repeated_at = At()  # place of the event with a whole interaction
        self._pending: tuple[str, At] | None = None  # the status of an unfinished interaction
        self._tail: int | None = None  # the offset of the last event, beyond which no step reaches
        self._token: str | None = None
        self._before = "", b""  # the id of the previous event, and its bytes
        self._ids_differ = True  # whether no two different events had one id

    @property
    def is_over(self) -> bool:
        """Whether the last event was read; `[DONE]` follows it at once, if at all."""
        return self._tail is not None or self.saw_done

    # -- events --------------------------------------------------------------------------------------------------

    def on_event(self, event: Any, name: str | None) -> None:
        """Reads one event; its name repeats its `event_type`."""
        (ident, payload), self._before = self._before, (word(event.get("event_id")) or "", self.frame[0])
        if ident and ident == self._before[0] and payload != self.frame[0]:
            self._ids_differ = False
        elif ident and payload == self.frame[0] and self._ids_differ:  # an id belongs to one event
            self._late = self.frame
            self._quirk("event_twice", "events came twice, with the same id; the second is left out")
            return
        kind = event.get("event_type") or name or ""
        if self._tail is not None and kind in _OF_STEPS and not self.take_late_event(
                kind in table.DELTAS and mapping_of(event.get("delta")).get("arguments"), kind in table.STARTS):
            self.after_end()
        elif kind in table.DELTAS:
            delta = event["delta"]
            step = self._open.get(event.get("index"))
            if step is None:
                self._stray(event.get("index"), delta)
            elif not step.extend(delta):
                odd = f"a delta {str(delta.get('type'))[:80]!r} does not belong in {step.type[:80]!r}"
                lost = step.type == table.CALL and (delta.get("text") or delta.get("arguments") is not None)
                self._quirk(UNREAD_CALL if lost else unread_rule(API, delta, "unknown_delta"), odd)
        elif kind in table.STARTS:
            self._begin(event, table.STARTS[kind])
        elif kind in table.STOPS:
            self._close(event.get("index"))
        elif kind in table.LAST_EVENTS or kind in table.BEGINS:
            if kind in table.BEGINS and not self._begin_interaction(word(mapping_of(event["interaction"]).get("id"))):
                return
            self._interaction(event["interaction"], ("interaction",), last=kind in table.LAST_EVENTS)
        elif kind == table.UPDATE:
            self.id = word(event.get("interaction_id")) or self.id
            self._status(event.get("status"), self.at("status"), last=False)
        elif kind == "error" or event.get("error"):
            error = read_error(event, self.http_status) or ProviderError(str(event.get("message") or ""))
            self.fail(error, self.at("error"))
        else:
            self._quirk(unread_rule(API, event, "unknown_event"), f"an event of type {str(kind)[:80]!r} is not known")

    def _begin_interaction(self, ident: str | None) -> bool:
        """Returns whether the interaction is the current one: one that begins after its end is another answer."""
        if ident is not None and ident == self.id:
            self._told_again = bool(self._indexes)
            return True
        if self._tail is not None:
            self.saw_done = True
            self.after_end()
            return False
        if self._order:
            self._begin_another()
        return True

    def _begin_another(self) -> None:
        # A gateway that asks again appends a second answer, whose status says nothing about the calls of the first.
        self._quirk("second_interaction", "another interaction begins before the first one ended")
        for step in self._order:
            step.orphan = True
        self._open.clear()
        self._indexes.clear()

    def _begin(self, event: Mapping[str, Any], holder: str) -> None:
        index = event.get("index")
        if self._told_again and index in self._indexes and index not in self._open:  # a step that ended begins again
            self._begin_another()
        self._indexes.add(index)
        if index is None:
            self._quirk("missing_index", "a step has no index")
        elif index in self._open:
            self._quirk("repeated_index", f"step {str(index)[:20]} began twice")
        self._check_type(event[holder])
        self._keep(index, GrowingStep(event[holder], self.text(), holder, self.frame[2]))

    def _keep(self, index: Any, step: GrowingStep) -> GrowingStep:
        self._order.append(step)
        self._open[index] = step
        return step

    def _stray(self, index: Any, delta: Mapping[str, Any]) -> None:
        self._quirk("delta_without_start", "a delta belongs to a step that never began")
        implied = STEP_OF_DELTA.get(str(delta.get("type")))
        if implied is not None:
            self._keep(index, GrowingStep({"type": implied}, "{}", "step", self.frame[2], orphan=True)).extend(delta)

    def _close(self, index: Any) -> None:
        # Later events with this index belong to another step: a closed call must not change.
        step = self._open.pop(index, None)
        if step is None and self._order and index not in self._indexes:
            self._quirk(UNREAD_CALL, "a step ended that never began: it may be a call")
        elif step is None:
            self._quirk("stop_without_start", "a step ended that was not open: it never began, or had ended")
        else:
            step.closed, step.end = True, self.frame[3]

    # -- interactions --------------------------------------------------------------------------------------------

    def on_body(self, body: Any) -> None:
        """Reads a whole interaction or an error (already read by the base class)."""
        if self.error is None and not any(name in body for name in ("status", "steps", "outputs", "id")):
            self.find(f"{API}.no_interaction", "the body is not an interaction", self.at(), Severity.ERROR)
        self._interaction(body, (), last=True)
        if word(body.get("status")):
            self.raw, self.raw_at = body["status"], self.at("status")
        name = "steps" if isinstance(body.get("steps"), list) else "outputs"
        self._steps(body.get(name), (name,))

    def _interaction(self, value: Any, path: tuple[str, ...], *, last: bool) -> None:
        if last and self.streaming:
            # The last event repeats the interaction, and no open step reaches into it.
            self._tail = self.frame[2]
        self.id = word(value.get("id")) or self.id
        self.model = word(value.get("model")) or self.model
        self._token = word(value.get("continuation_token")) or self._token
        self.usage = _usage(value.get("usage")) or self.usage
        self._status(value.get("status"), self.at(*path, "status"), last=last)
        faults = value.get("errors")
        if value.get("status") == "failed" and isinstance(faults, list) and faults:
            error = read_error({"error": faults[0]})
            if error is not None:
                self.fail(error, self.at(*path, "errors", 0))
        steps = value.get("steps")
        if last and self.streaming and not self._parts:
            self._steps(steps, (*path, "steps"))  # the end may repeat all steps, or hold them for the first time
            self._repeated_at = self.at()

    def _status(self, status: Any, at: At, *, last: bool) -> None:
        if not isinstance(status, str):
            return
        # Each event before the end says in_progress, which is not a stop word.
        if status in table.PENDING and not last:
            self._pending = status, at
        elif last or self.raw is None:
            self.end_with(status, at)

    def _steps(self, steps: Any, path: tuple[str, ...]) -> None:
        found, text = list_of(steps), self.text()
        calls = [at for at, step in enumerate(found) if isinstance(step, dict) and step.get("type") == table.CALL]
        for number, step in enumerate(found):
            if not isinstance(step, dict):
                continue
            self._check_type(step)
            failed = step.get("error")
            if isinstance(failed, Mapping):
                error = read_error({"error": failed})
                if error is not None:
                    self.fail(error, self.at() if self.streaming else self.at(*path, number, "error"))
            # Under any other status the last call may have been cut, which an object does not show.
            closed = self.raw is not None and (self.raw in table.FINISHED or number not in calls[-1:])
            at = self.at(*path, number) if step.get("type") == table.CALL else At()
            self._parts += read_step(step, closed, at, partial(slice_of, text, *path, number))

    def _check_type(self, step: Mapping[str, Any]) -> None:
        if step.get("type") not in (table.CALL, table.MCP_CALL) and may_be_call(API, step):
            self._quirk(UNREAD_CALL, f"a step of the unknown type {str(step.get('type'))[:80]!r} may be a call")

    # -- the response --------------------------------------------------------------------------------------------

    def build(self) -> ChatResponse:
        """The response as far as it was read."""
        limit = self.size if self._tail is None else self._tail
        parts = [part for step in self._order for part in step.parts(limit)]
        if parts and self.streaming:
            parts, different = compare(parts, self._parts, self._repeated_at)
            for found in different:
                self.find(f"{API}.{found.rule}", found.message, found.at, found.severity)
        else:
            parts = self._parts
        if self.raw is None and self.background and self._pending is not None:
            self.raw, self.raw_at = self._pending  # the stream was lost; the interaction continues and can be fetched
        if self.raw == "requires_action" and not any(type(part) is ToolCall for part in parts):
            self.find(f"{API}.action_without_call", "the status is requires_action, and there is no call", self.raw_at)
        for at in () if self.raw is None else open_places(self._order, limit):
            self.find(f"{API}.step_not_closed", "the interaction ended, but a step never did", at)
        return self.response(parts, continuation_token=self._token)

    def _quirk(self, rule: str, message: str) -> None:
        self.find(f"{API}.{rule}", message, self.at())


def _usage(usage: Any) -> Usage | None:
    """The token counts. The API counts thoughts separately from the output; both count under the cap."""
    if not isinstance(usage, dict):
        return None
    names = ("input", "output", "thought", "cached")
    input_tokens, output_tokens, thought, cached = (token_count(usage.get(f"total_{name}_tokens")) for name in names)
    return Usage(input_tokens, output_tokens if thought is None else (output_tokens or 0) + thought, thought, cached)
