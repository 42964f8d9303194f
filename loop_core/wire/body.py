"""Helpers that the formats share for bodies: JSON as Python values, and JSON text in which some values stay exactly as
received."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from loop_core.errors import EncodeError
from loop_core.json_parser import from_json
from loop_core.values import EMPTY, ChatResponse, OpaquePart, ReasoningPart, ResponsePart, TextPart, ToolCall, Usage

# -- values of another shape than they should have count as absent ---------------------------------------------------


def word(value: Any) -> str | None:
    """The value if it is a non-empty string; None for anything else."""
    return value if isinstance(value, str) and value else None


def is_flat(value: Mapping[str, Any]) -> bool:
    """Whether an object holds only plain values, like a ping and unlike nearly every piece of an answer."""
    return not any(type(member) in (dict, list) and member for member in value.values())


TRAILING = "something follows the end of the JSON; strict clients refuse such a body"
"""The finding about a whole body that does not end with its JSON."""


def first_object(text: bytes) -> tuple[bytes, bytes]:
    """Splits a text into the JSON object at its beginning and what follows, such as a proxy's remark. The text is not
    split if it begins with no whole object, if nothing follows, or if more JSON follows: another answer, or (after a
    comma) more of this one."""
    spelled = text.decode("utf-8", "surrogateescape")
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(spelled)
    except (ValueError, RecursionError):
        return text, b""
    rest = spelled[end:].encode("utf-8", "surrogateescape")
    follows = isinstance(value, dict) and rest.strip()[:1] not in (b"", b"{", b"[", b",")
    return (text[: len(text) - len(rest)], rest) if follows else (text, b"")


def string(value: Any) -> str | None:
    """The value if it is a string; None for anything else."""
    return value if isinstance(value, str) else None


def integer(value: Any) -> int | None:
    """The value if it is a whole number; None for anything else, also for a boolean."""
    return value if type(value) is int else None


def misfits_type(value: Any, kind: type) -> bool:
    """Whether a value is neither of this type nor empty."""
    return bool(value) and not isinstance(value, kind)


_MOST = 1 << 63  # the counts of providers are whole numbers of 64 bits


def token_count(value: Any) -> int | None:
    """Returns a number of tokens from 0; None for anything else, also for a boolean. A whole number may be written with
    a fraction (`12.0`); a cap of `-1` means no cap."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < _MOST else None


def total_of(usage: Usage) -> int | None:
    """Input and output tokens together; None if either is unknown."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


def list_of(value: Any) -> list[Any]:
    """The value if it is a list; an empty list for anything else."""
    return value if isinstance(value, list) else []


def mapping_of(value: Any) -> Mapping[str, Any]:
    """The value if it is an object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def value_at(value: Any, path: Iterable[str | int]) -> Any:
    """The value at a path of names and indices; None if there is none."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


# -- bodies ----------------------------------------------------------------------------------------------------------


def rest(body: Mapping[str, Any], *taken: str) -> Mapping[str, Any]:
    """Returns the fields of a body without those in `taken`. `a.b` in `taken` is a field of an object; an object
    without remaining fields is left out."""
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
    """Returns a body with further fields; if both have a field, objects are merged, otherwise `body` wins."""
    whole = dict(body)
    for name, value in extra.items():
        there = whole.get(name)
        if name not in whole:
            whole[name] = value
        elif isinstance(there, Mapping) and isinstance(value, Mapping):
            whole[name] = merge(there, value)
    return whole


def non_null(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


class WrittenNumber(float):
    """A number with a fraction or an exponent that keeps its original digits, which a double may round."""

    __slots__ = ("digits",)

    def __new__(cls, digits: str) -> WrittenNumber:
        """Makes the number from JSON digits."""
        value = super().__new__(cls, digits)
        value.digits = digits
        return value

    digits: str


_READ_NUMBERS_AS_WRITTEN = json.JSONDecoder(parse_float=WrittenNumber).decode


def json_value(text: str | None) -> Any:
    """Returns the JSON value of a text, whose numbers `dump` writes unchanged; None if the text is not JSON."""
    try:
        return _READ_NUMBERS_AS_WRITTEN(text or "")
    except (ValueError, RecursionError):
        return None


def opaque(part: OpaquePart, api: str) -> Any:
    """The JSON value of a block that is kept verbatim. Raises `EncodeError` if the block is not JSON."""
    try:
        return _READ_NUMBERS_AS_WRITTEN(part.json)
    except (ValueError, RecursionError):
        raise EncodeError(f"the opaque {part.type} is not JSON", api=api, what="opaque") from None


def opaque_object(part: OpaquePart, api: str) -> dict[str, Any]:
    """The JSON object of a block that is kept verbatim. Raises `EncodeError` if the block is not an object."""
    value = opaque(part, api)
    if not isinstance(value, dict):
        raise EncodeError(f"the opaque {part.type} is not a JSON object", api=api, what="opaque")
    return value


def object_text(call: ToolCall, api: str) -> str | None:
    """The arguments as JSON text for a whole body, character for character; None if there are no arguments. Raises
    `EncodeError` if the arguments are not JSON, are a JSON string, or have white space around them."""
    text = call.arguments
    if text is None:
        return None
    try:
        value = json.loads(text, parse_constant=_no_constant)  # Python accepts NaN, which is not JSON
    except (ValueError, RecursionError):
        value = ""
    if isinstance(value, str) or text != text.strip():  # white space around it would be lost
        raise EncodeError("a whole body has arguments as an object; these are not one", api=api, what="call.arguments")
    return text


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def misfits(response: ChatResponse, words: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yields what a format without continuation tokens cannot carry of a response, and why; `words` are the names of
    the further stop words that the format has."""
    if response.continuation_token is not None:
        yield "continuation_token", "nothing can be continued by a token"
    for name in response.native:
        if name not in words:
            yield f"native.{name}", f"the format has no field {name!r}"


# -- JSON text in which some values are written exactly as they were received ----------------------------------------

_COMPACT, _SORTED = (
    # Made once, because `json.dumps` with any option makes an encoder for each call.
    json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=sort).encode for sort in (False, True)
)


class RawJSON(str):
    """JSON that is written unchanged."""

    __slots__ = ()


def conflicting_arguments(first_arguments: Any, text: str) -> str | None:
    """Returns the arguments in the event that began a call, as JSON, if the call's text is another value; else None."""
    if not first_arguments or (isinstance(first_arguments, str) and text.startswith(first_arguments)):
        return None
    try:
        value = from_json(text.encode("utf-8", "replace"))
    except ValueError:
        return None  # cut or not JSON, which is reported anyway
    first = (isinstance(first_arguments, str) and read_object(first_arguments)) or first_arguments
    # Compared as texts, since 1 == True in Python.
    return None if compact(value, sort=True) == compact(first, sort=True) else compact(first)


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
        return json.dumps(value)  # UTF-8 cannot encode a lone surrogate, an escape can
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
    if kind is WrittenNumber:
        return str(value.digits)
    return dump(dict(value)) if isinstance(value, Mapping) else _COMPACT(value)


@lru_cache(maxsize=1024)
def _name(key: str) -> str:
    """The JSON of a member's name, cached: a stream repeats few names."""
    return f"{dump(key)}:"


def to_bytes(text: str) -> bytes:
    """The text in UTF-8. A lone surrogate, which JSON escapes can express, is written as an escape again."""
    return text.encode("utf-8", "backslashreplace")


_LINE_BREAK = re.compile(r"\r\n|\n|\r")


def sse_event(value: Any, name: str = "", end: str = "\n") -> bytes:
    """One server-sent event. JSON of several lines becomes several `data:` lines, which its reader joins again."""
    head = f"event: {name}{end}" if name else ""
    return to_bytes(head + "".join(f"data: {line}{end}" for line in _LINE_BREAK.split(dump(value))) + end)


def mend(text: str) -> str:
    """Returns a text with its surrogate pairs joined to characters. Half a pair at either end stays, since the other
    half may come with the next response. Half a pair in the middle is lost."""
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
    """The parts of a response with surrogate pairs joined in texts and reasoning, and in arguments that lose nothing by
    it."""
    return tuple([part._replace(text=mend(part.text)) if isinstance(part, (TextPart, ReasoningPart)) else
                  part._replace(arguments=whole) if isinstance(part, ToolCall) and (whole := _joined(part)) else part
                  for part in parts])


def _joined(call: ToolCall) -> str | None:
    sent = call.arguments or ""
    whole = mend(sent)
    return whole if whole.count("\ufffd") == sent.count("\ufffd") else None


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object in `text`; None if it is not a whole JSON object."""
    try:
        value = from_json(text.encode())
    except (ValueError, TypeError):  # the parser refuses a lone surrogate
        return None
    return value if isinstance(value, dict) else None


def pieces(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters; no piece if it is empty."""
    return [text[start : start + size] for start in range(0, len(text), size)]
