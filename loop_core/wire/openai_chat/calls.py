"""Assigns the tool deltas of Chat Completions to calls, and builds the calls.

Servers number streamed calls in different ways; this module puts the pieces together for all of them. This table
assigns a delta to a call:

    index    id              name        the delta
    new      any or none     any         opens a call (`id` or name given)
    new      known           none        goes on with the call of that id (the server renumbers)
    new      none            none        goes on with the only call; beside a complete one or several, an orphan
    known    none or same    none/same   goes on; a repetition of the whole call changes nothing
    known    none or same    other       opens a call if the one there has arguments, else a piece of the name
    known    other           none        goes on (OCI, LM Studio: a fresh id on every delta)
    known    other           same        opens a call if the one there is complete, else goes on (LM Studio)
    known    other           other       opens a call (Ollama: index 0 for all)
    none     new             any         opens a call (Gemini's compatible endpoint, SGLang)
    none     known           none/same   goes on
    none     none            other       opens a call
    none     none            none/same   goes on with the last one; a name opens a call if that one is complete

Two complete JSON texts in a row are never one, so opening a call there loses nothing; elsewhere a wrong guess leaves
arguments that do not parse, so the call is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from loop_core.json_parser import from_json
from loop_core.values import ArgsForm, At, CallKind, ToolCall
from loop_core.wire.body import value_at, word
from loop_core.wire.openai_chat.table import API
from loop_core.wire.reads import UNREAD_CALL


class QuirkNote(Protocol):
    """Reports a quirk of the bytes."""

    def __call__(self, rule: str, message: str, at: At | None = None) -> None:
        """Reports the quirk; the same report counts once."""


class GrowingCall:
    """One call while it arrives."""

    __slots__ = ("at", "form", "id", "kind", "late", "name", "orphan", "pieces", "signature", "unended", "wanders")

    def __init__(self, kind: CallKind, at: At | None) -> None:
        self.id: str | None = None
        self.name = ""
        self.pieces: list[str] | None = None
        self.kind = kind
        self.form = ArgsForm.STRING
        self.signature: str | None = None
        self.at = at
        self.late = False
        """Whether a piece of the call, or its name, came after the stop reason."""
        self.unended = False
        """Whether another answer began before the one that holds the call had ended, or a piece may belong to another
        call."""
        self.orphan = False
        """Whether the first delta of the call had neither id nor name: its pieces may be those of another call."""
        self.wanders = False
        """Whether the call's id changes from delta to delta, so that a new id alone does not begin another call."""

    @property
    def arguments(self) -> str | None:
        """The characters received so far; None if no arguments were sent at all."""
        return None if self.pieces is None else "".join(self.pieces)

    @property
    def complete(self) -> bool:
        """Whether the arguments so far are a whole JSON object, so that nothing can follow."""
        text = self.arguments
        if not text or not text.rstrip().endswith("}"):  # cheaper than parsing a text that is nearly always unfinished
            return False
        try:
            return isinstance(from_json(text.encode()), dict)
        except (ValueError, TypeError):  # a lone surrogate is a TypeError
            return False

    def grow(self, piece: str) -> None:
        """Adds a piece of the arguments; an empty piece shows that arguments exist."""
        if self.pieces is None:
            self.pieces = []
        if piece:
            self.pieces.append(piece)

    def freeze(self, closed: bool) -> ToolCall:
        """The call as received."""
        lost = self.orphan and not (self.id or self.name)
        whole = closed and not (self.late or self.unended or lost)
        return ToolCall(self.id, self.name, self.arguments, whole, self.kind, self.form, signature=self.signature,
                        at=self.at)


Slice = Callable[[str, str], str | None]
"""Returns the verbatim JSON of a delta's arguments, by holder and key. Called only if they are not a string."""
Text = Callable[[], str | None]


class CallAssembly:
    """The calls of one choice, in the order in which they began."""

    __slots__ = ("_by_index", "_growing", "_last", "_note", "_renumbered", "_sealed", "opened")

    def __init__(self, note: QuirkNote) -> None:
        self.opened: list[GrowingCall] = []
        self._by_index: dict[Any, GrowingCall] = {}
        self._growing: dict[Any, list[str]] = {}
        """Index -> the pieces of the call to which a delta with only a piece of arguments can be added directly."""
        self._last: GrowingCall | None = None
        self._renumbered: set[Any] = set()
        """Indices without a call of their own, whose pieces went to the only call."""
        self._note = note
        self._sealed = False

    def seal(self) -> None:
        """Notes that a stop reason arrived: it ends the calls so far, and later pieces are reported."""
        self._sealed = True
        self._growing.clear()
        for call in self.opened:
            call.late = False

    def append(self, delta: Mapping[str, Any]) -> bool:
        """Reads the most frequent delta, a piece of arguments for a known index; returns False for any other."""
        try:
            function = delta["function"]
            pieces, text = self._growing[delta["index"]], function["arguments"]
        except (KeyError, TypeError):
            return False
        if delta.get("id") or (len(function) > 1 and function.get("name")) or type(text) is not str:
            return False
        pieces.append(text)
        return True

    def add(self, value: Any, at: At | None, verbatim: Slice) -> None:
        """Adds a whole call of a message; it never continues another one."""
        kind, payload, holder, key = _payload(value)
        call = self._open(None, kind, at)
        self._fill(call, value, word(payload.get("name")), payload.get(key), lambda: verbatim(holder, key))

    def take(self, delta: Mapping[str, Any], at: At | None, verbatim: Slice) -> None:
        """Reads any element of `tool_calls` of a chunk."""
        kind, payload, holder, key = _payload(delta)
        index, piece = delta.get("index"), payload.get(key)
        ident, name = _word(delta.get("id")), word(payload.get("name"))
        if index is None or isinstance(index, (list, dict)):  # neither of these can be a key
            self._note(f"{API}.index_missing", "a tool call delta has no index", at)
            index, call = None, self._without_index(ident, name, piece)
        elif index in self._by_index:
            before = self._by_index[index]
            call = self._at_known(before, ident, name, piece, at)
            # The pieces that came under this index, which another call seemed to go on with, may be those of this one.
            before.unended = before.unended or (call is None and index in self._renumbered)
        else:
            call = self._at_new(index, ident, name, piece, at)
        if call is None:
            call = self._open(index, kind, at)
            call.orphan = not (ident or name)
        elif name and name == call.name and piece and piece == call.arguments and call.complete:
            self._note(f"{API}.call_repeated", "a complete call was sent again", at)
            return
        self._last = call
        self._fill(call, delta, name, piece, lambda: verbatim(holder, key))
        if call.pieces is not None and call.form is ArgsForm.STRING and index is not None and not self._sealed:
            self._growing[index] = call.pieces
        else:
            self._growing.pop(index, None)

    def _without_index(self, ident: str | None, name: str | None, piece: Any) -> GrowingCall | None:
        # Gemini's compatible endpoint sends no index (openai-python#2806, opencode#14972), nor does SGLang.
        if ident:
            call = next((c for c in self.opened if c.id == ident), None)
            return None if call is not None and name and (name != call.name or _restarts(call, piece)) else call
        last = self._last
        if last is None or not name or not last.name:
            return last
        return None if name != last.name or _restarts(last, piece) else last

    def _at_known(
        self, call: GrowingCall, ident: str | None, name: str | None, piece: Any, at: At | None
    ) -> GrowingCall | None:
        if not ident or not call.id or ident == call.id:
            # Ollama sends index 0 for every call (ollama#15457, opencode#14972): a further name or object begins one.
            if name and call.name and ((name != call.name and call.arguments) or _restarts(call, piece)):
                self._note(f"{API}.index_shared", "several calls share one index", at)
                return None
            return call
        if name and (name != call.name or call.complete) and (piece or not call.wanders):
            self._note(f"{API}.index_shared", "several calls share one index", at)
            return None
        if (other := next((c for c in self.opened if c.id == ident), None)) is not None:
            self._note(f"{API}.{UNREAD_CALL}", "the index of a piece names one call and its id another", at)
            return other
        # OCI behind LiteLLM (PR#40040) and LM Studio change the id in every piece of one call.
        self._note(f"{API}.id_changes", "the id of a call changes between its deltas; the first one is kept", at)
        call.wanders = True
        return call

    def _at_new(self, index: Any, ident: str | None, name: str | None, piece: Any, at: At | None) -> GrowingCall | None:
        if ident and not name:
            call = next((c for c in self.opened if c.id == ident), None)
            if call is not None:
                self._note(f"{API}.index_changes", "the index of a call changes between its deltas", at)
                return call
        if ident or name:
            return None
        # Cerebras sends later pieces with another index and without an id (dirac PR#215): they belong to the only call.
        if len(self.opened) == 1 and not (piece and self.opened[0].complete):
            if piece:
                self._note(f"{API}.index_changes", "the index of a call changes between its deltas", at)
                self._by_index[index] = self.opened[0]
                self._renumbered.add(index)
            return self.opened[0]
        self._note(f"{API}.orphan_delta", f"a tool call delta of index {index!r} belongs to no call", at)
        return None

    def _open(self, index: Any, kind: CallKind, at: At | None) -> GrowingCall:
        call = GrowingCall(kind, at)
        call.late = self._sealed
        self.opened.append(call)
        self._last = call
        if index is not None:
            self._by_index[index] = call
        return call

    def _fill(self, call: GrowingCall, value: Mapping[str, Any], name: str | None, piece: Any, text: Text) -> None:
        before = call.id, call.name
        call.id = call.id or _word(value.get("id"))
        if name and name != call.name:
            call.name += name
        if self._sealed and before != (call.id, call.name):
            call.late = True
        signature = thought_signature(value)
        if signature:
            call.signature = signature
        if piece is None:
            return
        changed = self._arguments(call, piece, text)
        if changed and self._sealed:
            call.late = True

    def _arguments(self, call: GrowingCall, piece: Any, verbatim: Text) -> bool:
        if type(piece) is str:
            if call.form is ArgsForm.OBJECT and piece and call.arguments == "{}":
                call.form = ArgsForm.STRING
                call.pieces = None  # the empty object meant "nothing yet"
            call.grow(piece)
            return bool(piece)
        text = verbatim()
        if text is None:
            return False
        self._note(f"{API}.arguments_object", "arguments were sent as JSON instead of a string; a cut would not show",
                   call.at)
        if any(call.pieces or ()) and call.form is ArgsForm.STRING:  # its JSON would parse as a part of the text
            self._note(f"{API}.{UNREAD_CALL}", "a piece of arguments that are sent as a text is no text", call.at)
        call.grow(text)
        call.form = ArgsForm.OBJECT
        return True


def _restarts(call: GrowingCall, piece: Any) -> bool:
    """Whether arguments with a repeated name begin another call. They do only if the call so far is complete."""
    return bool(piece) and piece != call.arguments and call.complete


def _payload(value: Mapping[str, Any]) -> tuple[CallKind, Mapping[str, Any], str, str]:
    """The kind of a call, the object that holds its name, that object's key, and the key of the arguments there."""
    custom, function = value.get("custom"), value.get("function")
    if isinstance(custom, Mapping) and (value.get("type") == "custom" or not isinstance(function, Mapping)):
        return CallKind.CUSTOM, custom, "custom", "input"
    return CallKind.FUNCTION, function if isinstance(function, Mapping) else {}, "function", "arguments"


def _word(value: Any) -> str | None:
    """An id as text; None if it is missing or empty."""
    if not value or isinstance(value, (list, dict)):
        return None
    return value if type(value) is str else str(value)


def thought_signature(value: Mapping[str, Any]) -> str | None:
    """Gemini's thought signature of a call, which its compatible endpoint sends, and asks for in requests."""
    return word(value_at(value, ("extra_content", "google", "thought_signature")))
