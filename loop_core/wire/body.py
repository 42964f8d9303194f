"""Helpers for request bodies that all formats share: reading fields of any type, and checks before writing.

A body is JSON as Python values. The last section writes JSON text in which some values stay exactly as they were
received.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from loop_core.errors import EncodeError
from loop_core.json_parser import from_json
from loop_core.values import (
    EMPTY,
    CallKind,
    Message,
    OpaquePart,
    ReasoningPart,
    Request,
    ResponsePart,
    Role,
    TextPart,
    Tool,
    ToolCall,
    ToolResultPart,
)

# -- values of another shape than they should have count as absent ---------------------------------------------------


def word(value: Any) -> str | None:
    """A non-empty string; None for anything else."""
    return value if isinstance(value, str) and value else None


def string(value: Any) -> str | None:
    """A string; None for anything else."""
    return value if isinstance(value, str) else None


def integer(value: Any) -> int | None:
    """A whole number; None for anything else, also for a boolean."""
    return value if type(value) is int else None


def list_of(value: Any) -> list[Any]:
    """A list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def mapping_of(value: Any) -> Mapping[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


# -- bodies ----------------------------------------------------------------------------------------------------------


def rest(body: Mapping[str, Any], *taken: str) -> Mapping[str, Any]:
    """The fields of a body that no reader uses. `a.b` in `taken` is a field of an object; an object without remaining
    fields is left out."""
    left = {name: value for name, value in body.items() if name not in taken}
    for path in taken:
        outer, _, inner = path.partition(".")
        value = left.get(outer)
        if inner and isinstance(value, Mapping) and inner in value:
            left[outer] = {name: item for name, item in value.items() if name != inner}
            if not left[outer]:
                del left[outer]
    return left or EMPTY


def merge(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """A body with further fields; where both name a field, objects are joined and `body` wins."""
    whole = dict(body)
    for name, value in extra.items():
        there = whole.get(name)
        if name not in whole:
            whole[name] = value
        elif isinstance(there, Mapping) and isinstance(value, Mapping):
            whole[name] = merge(there, value)
    return whole


def as_is(tool: Tool) -> Tool:
    """The tool with its schema unchanged."""
    return tool


def non_null(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def opaque(part: OpaquePart, api: str) -> Any:
    """The JSON value of a block that is kept verbatim.

    Raises:
        EncodeError: it is not JSON.
    """
    try:
        return json.loads(part.json)
    except (ValueError, RecursionError):
        raise EncodeError(f"the opaque {part.type} is not JSON", api=api, what="opaque") from None


def opaque_object(part: OpaquePart, api: str) -> dict[str, Any]:
    """The JSON object of a block that is kept verbatim.

    Raises:
        EncodeError: it is not an object.
    """
    value = opaque(part, api)
    if not isinstance(value, dict):
        raise EncodeError(f"the opaque {part.type} is not a JSON object", api=api, what="opaque")
    return value


def content(part: ToolResultPart, api: str) -> Any:
    """The JSON values that a result holds beside its text.

    Raises:
        EncodeError: it is not JSON.
    """
    return opaque(OpaquePart("result", part.json or ""), api)


def arguments(call: ToolCall, api: str) -> dict[str, Any]:
    """The arguments of a call as an object, for formats that do not send them as a string.

    Raises:
        EncodeError: they are not an object. A call that was cut has no place in a history.
    """
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise EncodeError(f"the arguments of {call.name} are not a JSON object", api=api, what="call.arguments")
    return value


def object_text(call: ToolCall, api: str) -> str | None:
    """The arguments as JSON text for a whole body, character for character; None if there are none.

    Raises:
        EncodeError: they are not JSON, are a JSON string, or have white space around them.
    """
    text = call.arguments
    if text is None:
        return None
    try:
        value = json.loads(text, parse_constant=_no_constant)  # NaN is no JSON, and Python reads it
    except (ValueError, RecursionError):
        value = ""
    if isinstance(value, str) or text != text.strip():  # blanks around it would not come back
        raise EncodeError("a whole body sends arguments as an object; these are none", api=api, what="call.arguments")
    return text


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def refuse(call: ToolCall, api: str) -> EncodeError:
    """The error for a kind of call that the format does not have."""
    return EncodeError(f"{call.name}: there are no {call.kind} calls", api=api, what=f"{call.kind} call")


def one_choice(request: Request, api: str) -> None:
    """Raises for a request for several choices, in a format that has only one."""
    if request.n != 1:
        raise EncodeError("only one answer can be asked for", api=api, what="n")


# -- a prompt in place of a history ----------------------------------------------------------------------------------

PROMPT_LOSES: Mapping[str, str] = {
    "message.role": "a prompt is one text: it says who speaks only where its own words do",
    "message.grouping": "as message.role",
    "text.grouping": "as message.role",
    "reasoning": "as message.role",
    "previous_id": "nothing is kept on the provider's side",
    "continuation_token": "as previous_id",
    "background": "as previous_id",
}
"""What a request loses in a format that takes a prompt -> why."""


def prompt_of(messages: Sequence[Message], api: str) -> str:
    """The texts of the messages in one prompt, so that an answer continues the last one.

    Raises:
        EncodeError: a message holds something other than text.
    """
    only_text(messages, api)
    # The text of an answer so far stands right behind its prompt: the model goes on with it.
    return "".join(message.text if message.role is Role.ASSISTANT else f"\n\n{message.text}"
                   for message in messages).removeprefix("\n\n")


def only_text(messages: Iterable[Message], api: str) -> None:
    """Raises for messages with images or other blocks, in a format that takes only text.

    Raises:
        EncodeError: a message has such a block.
    """
    for message in messages:
        for part in message.parts:
            if isinstance(part, OpaquePart):
                raise EncodeError(f"a prompt is text, and there is a block of type {part.type}", api=api, what="opaque")


def no_calls(request: Request, api: str, why: str) -> None:
    """Raises for a request with tools, calls or results, in a format without tools.

    Raises:
        EncodeError: the request has some.
    """
    if request.tools or any(message.tool_calls or message.results for message in request.messages):
        raise EncodeError(why, api=api, what="tools")


def forced_tool(choice: str | None) -> str | None:
    """The name in `tool:NAME`; None for the other choices."""
    return choice[5:] if choice is not None and choice.startswith("tool:") else None


def unknown_choice(choice: str, api: str) -> EncodeError:
    """The error for a tool choice that is none of the four."""
    return EncodeError(f"tool_choice {choice!r}: expected auto, any, none or tool:NAME", api=api, what="tool_choice")


def custom(name: str, tools: Iterable[Tool]) -> bool:
    """Whether the tool of this name takes free-form text."""
    return any(tool.name == name and tool.kind is CallKind.CUSTOM for tool in tools)


def calls_of(messages: Iterable[Message]) -> Iterator[ToolCall]:
    """Every call of a history that needs a result from the client."""
    return (call for message in messages for call in message.tool_calls)


def split_system(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """The leading system messages of a history, and the rest, for formats with a separate field for them."""
    count = next((at for at, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))
    return messages[:count], messages[count:]


def with_names(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The history with the tool's name in every result whose call is in the history."""
    names = {call.id: call.name for call in calls_of(messages) if call.id is not None}
    return tuple(
        _map_results(message, lambda part: part._replace(name=part.name or names.get(part.call_id)))
        if message.results else message
        for message in messages
    )


def with_ids(messages: Sequence[Message], *, missing: bool = True) -> tuple[Message, ...]:
    """The history with a unique id in every call and its result, for formats that refuse it otherwise.

    An id that the provider gave stays where it is the first of its kind. A missing id, or one that an earlier call
    already has (servers count from 0 in every answer), is replaced by one such as `call00000`, a form that the
    strictest servers accept. A result answers the first open call with its id, or if it has no id with its name.
    Without `missing` a call that has no id gets none.
    """
    made: list[Message] = []
    waiting: list[tuple[ToolCall, str | None]] = []
    used: set[str] = set()
    given = {call.id for call in calls_of(messages) if call.id}
    fresh = (name for name in (f"call{count:05}" for count in itertools.count()) if name not in given)
    for message in messages:
        parts: list[Any] = []
        for part in message.parts:
            if type(part) is ToolCall and part.kind is not CallKind.SERVER:
                name = part.id
                if name in used or (missing and not name):
                    name = next(fresh)
                if name:
                    used.add(name)
                waiting.append((part, name))
                part = part if part.id == name else part._replace(id=name)
            elif isinstance(part, ToolResultPart):
                answers = next((each for each in waiting if _answers(part, each[0])), None)
                if answers is not None:
                    waiting.remove(answers)
                    part = part if part.call_id == answers[1] else part._replace(call_id=answers[1])
            parts.append(part)
        made.append(Message(message.role, tuple(parts)))
    return tuple(made)


def _answers(part: ToolResultPart, call: ToolCall) -> bool:
    return part.call_id == call.id if part.call_id else part.name in (None, call.name)


def _map_results(message: Message, change: Any) -> Message:
    return Message(message.role, tuple(change(p) if isinstance(p, ToolResultPart) else p for p in message.parts))


# -- JSON text in which some values stand exactly as they were received ----------------------------------------------

_COMPACT, _SORTED = (
    # Made once: `json.dumps` makes an encoder for every call that asks for anything.
    json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=sort).encode for sort in (False, True)
)


class RawJSON(str):
    """JSON that is written unchanged."""

    __slots__ = ()


def compact(value: Any, *, sort: bool = False) -> str:
    """JSON text without white space and without escaping of non-ASCII characters."""
    return (_SORTED if sort else _COMPACT)(value)


def dump(value: Any) -> str:
    """Compact JSON without escaping of non-ASCII characters; `RawJSON` values are written verbatim."""
    kind = type(value)
    if kind is str:
        text = encode_basestring(value)
        # nothing printable is a surrogate
        if text.isprintable() or not any("\ud800" <= char <= "\udfff" for char in text):
            return text
        return json.dumps(value)  # a lone surrogate is not UTF-8: it can only stand as an escape
    if kind is dict:
        return "{" + ",".join([_name(key) + dump(item) for key, item in value.items()]) + "}"
    if value is None:
        return "null"
    if kind is int:
        return repr(value)
    if kind is list or kind is tuple:
        return "[" + ",".join([dump(item) for item in value]) + "]"
    if kind is RawJSON:
        return str(value)
    return dump(dict(value)) if isinstance(value, Mapping) else _COMPACT(value)


@lru_cache(maxsize=1024)
def _name(key: str) -> str:
    """The JSON of a member's name, cached: a stream repeats few names."""
    return f"{dump(key)}:"


def to_bytes(text: str) -> bytes:
    """The text in UTF-8. A lone surrogate, which JSON escapes can express, is written as an escape again."""
    return text.encode("utf-8", "backslashreplace")


def mend(text: str) -> str:
    """A text whose surrogate pairs are joined to characters, even if two pieces split them.

    Half a character at either end stays: the other half may come with the next response. One in the middle is lost.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        begin = "\udc00" <= text[0] <= "\udfff"
        end = len(text) - ("\ud800" <= text[-1] <= "\udbff")
        inner = text[begin:end].encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # UTF-16 joins the halves
        return text[:begin] + inner + text[end:]
    return text


def mend_parts(parts: Iterable[ResponsePart]) -> tuple[ResponsePart, ...]:
    """The parts of a response with surrogate pairs joined in texts and reasoning."""
    return tuple([part._replace(text=mend(part.text)) if isinstance(part, (TextPart, ReasoningPart)) else part
                  for part in parts])


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object in `text`; None if it is not a whole JSON object."""
    try:
        value = from_json(text.encode())
    except (ValueError, TypeError):  # a lone surrogate is not text to the parser
        return None
    return value if isinstance(value, dict) else None


def pieces(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters; no piece if it is empty."""
    return [text[start : start + size] for start in range(0, len(text), size)]
