"""Credentials out, before anything else sees them: what counts as one, where it stands, and the mask in its place.

    bytes ─▶ spans of credentials ─▶ the same bytes, as many, with a mark such as [masked: GitHub token] in their place

Applied while exchanges are built and while sessions are written, so that no view and no file can show one, and again by
everything that leaves (`inspector.leaving`). A mask has the length of what it hides: offsets in a body stay true.
Searches run in time linear in the input: the patterns are RE2's, which has no backtracking.
"""

from __future__ import annotations

import binascii
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import re2

from inspector.sessions.credentials import ALPHABETS, FORMS, NAMES, NO_VARIABLES, PASSWORDS, VARIABLES
from loop_core.mask import SHORTEST

REDACTED = "REDACTED"
"""The mask of a whole value whose name stands beside it and says what it was: a header, a parameter, a JSON member."""
SHORT = b"[masked]"
"""The mask in a text where one that says more does not fit."""

NUMBER = "a number as a password"
"""Nines stand for it, or what holds it were no JSON any more."""

Counts = MutableMapping[str, int]
"""What was masked, by the names of the forms."""


class Span(NamedTuple):
    """A credential: bytes `start` to `end`, and what it is."""

    start: int
    end: int
    name: str


# -- patterns --------------------------------------------------------------------------------------------------------

_PIECE = re.compile(r"\{([A-Za-z])(\d+)(?:(\+)|-(\d+))?\}")
_BEFORE = r"(?:^|[^A-Za-z0-9]|\\[bfnrt]|\\u[0-9A-Fa-f]{4})"
"""What stands before a credential: no letter or digit, but for those of an escape in JSON."""
_QUOTE = r"\\*[\"']?"


def pattern_of(template: str) -> str:
    """The regular expression of a form's template."""
    found, at = [], 0
    for piece in _PIECE.finditer(template):
        letters, least, more, most = piece.groups()
        count = f"{{{least},}}" if more else f"{{{least},{most}}}" if most else f"{{{least}}}"
        found += [re.escape(template[at : piece.start()]), f"[{ALPHABETS[letters]}]{count}"]
        at = piece.end()
    return "".join([*found, re.escape(template[at:])])


def _fixed(template: str) -> bool:
    """Whether the last piece of a template has an exact length: then a longer word is something else."""
    last = list(_PIECE.finditer(template))[-1]
    return last.end() == len(template) and last[3] is None


def _names(names: Iterable[str]) -> str:
    return "|".join(name.replace("_", "[_-]?") for name in names)


_OWN_SHAPES: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,.-]|\\[nr])*?"
                    r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"),
    ("private key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s]|\\[nr])*"),
    ("private key", r"---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----(?:[A-Za-z0-9+/=\s:\",.-]|\\[nr])*"),
    ("private key", r"Private-Lines: [0-9]{1,3}(?:\\r)?(?:\\n|\s)(?:[A-Za-z0-9+/=\s]|\\[nr])*"),
    ("API key", r"sk-[A-Za-z0-9_-]*[A-Za-z0-9]{20}[A-Za-z0-9_-]*"),
)
"""Name -> pattern of forms that need more than a template."""

_PREFIX = r"(?:[A-Za-z0-9]+[_.-]){0,6}"
_JOINT = rf"{_QUOTE}\s{{0,8}}(?:(?::|=>?)\s{{0,8}}|,\s{{0,8}}{_QUOTE}value{_QUOTE}\s{{0,8}}:\s{{0,8}})"
"""Between a name and its value: `: `, `=`, or a header as a name beside a value."""
_BETWEEN = rf"{_JOINT}({_QUOTE})"
_LOOSE = r"([^\s\"'\\,;<>(){}\[\]&]+)"
_QUOTED = r"([^\"'\\\r\n]+)"

_CONTEXTS: tuple[tuple[str, str], ...] = (
    ("cookie", rf"(?i){_BEFORE}((?:set[_-]?)?cookie){_BETWEEN}{_QUOTED}"),
    ("password", rf"(?i){_BEFORE}({_PREFIX}(?:{_names(PASSWORDS)})){_JOINT}(\\*\")([^\"\\\r\n]+)"),
    ("password", rf"(?i){_BEFORE}({_PREFIX}(?:{_names(PASSWORDS)})){_JOINT}(\\*')([^'\"\\\r\n]+)"),
    ("password", rf"(?i){_BEFORE}({_PREFIX}(?:{_names(PASSWORDS)})){_JOINT}(){_LOOSE}"),
    ("named", rf"(?i){_BEFORE}({_PREFIX}(?:{_names(NAMES)})){_BETWEEN}(?:(?:bearer|basic|token|apikey)\s)?{_LOOSE}"),
    ("variable", rf"{_BEFORE}([A-Z][A-Z0-9_]*_(?:{'|'.join(VARIABLES).upper()})){_BETWEEN}{_LOOSE}"),
    ("element", rf"(?i)<(?:[A-Za-z0-9_-]+:)?({_PREFIX}(?:{_names((*PASSWORDS, *NAMES))}))>()([^<>\"\r\n]+)<"),
    ("flag", rf"(?i)--({_PREFIX}(?:{_names((*PASSWORDS, *NAMES))}|pass|token|key))(?:=|\s{{1,4}})({_QUOTE}){_LOOSE}"),
    ("flag", rf"(?i)--({_PREFIX}(?:{_names((*PASSWORDS, *NAMES))}|pass|token|key))\\*[\"']\s{{0,8}},\s{{0,8}}"
             rf"(\\*[\"']){_LOOSE}\\*[\"']\s{{0,8}}[,\])]"),
    ("login", rf"(?i)(?:curl\s(?:[^\r\n]*?\s)?(?:-u|--user|--proxy-user)[ =]?{_QUOTE}[^\s:\"'\\]{{1,64}}:"
              rf"|sshpass\s+-p\s?|mysql\w*\s(?:[^\r\n]*?\s)?-p|redis-cli\s(?:[^\r\n]*?\s)?-a\s"
              rf"|login\s+[^\s\"'\\]{{1,64}}\s+password\s+)()({_QUOTE}){_LOOSE}"),
    ("sql", r"(?i)(identified\s+(?:with\s+\w+\s+)?by|password)\s+(\\*')([^'\"\\\r\n]+)"),
    ("login in base64", rf"(?i){_BEFORE}(auth){_BETWEEN}([A-Za-z0-9+/]{{8,}}={{0,2}})"),
    ("signature", r"(?i)[, ](signature)()=([A-Za-z0-9+/%]{32,}={0,2})"),
    ("bearer", r"()(?i)(?:bearer)()[ ]{1,4}([A-Za-z0-9._~+/=-]{16,})"),
    ("basic", r"()(?i)(?:basic)()[ ]{1,4}([A-Za-z0-9+/]{8,}={0,2})"),
    ("address", r"[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#@:\"'\\<>]*)():([^\s/?#@\"'\\<>]+)@"),
    ("user", r"()[A-Za-z][A-Za-z0-9+.-]*://()([^\s/?#@:\"'\\<>]{12,})@"),
    ("parameter", r"(?i)[?&;]([\w.-]*(?:key|token|secret|sig|signature|password|passwd|pwd|auth|code|credential|jwt))"
                  r"()=([^&\s\"'\\#<>;]+)"),
)
"""Kind -> name, quote and value of credentials that are known by what stands before them."""


@cache
def _shapes() -> tuple[Any, tuple[tuple[str, bool], ...]]:
    rows = [(form.name, pattern_of(form.template), _fixed(form.template)) for form in FORMS]
    rows += [(name, pattern, False) for name, pattern in _OWN_SHAPES]
    options = re2.Options()
    options.max_mem = 256 << 20  # else the many counted repetitions fall back to the slow automaton
    joined = "|".join(f"({pattern})" for _, pattern, _ in rows)
    return re2.compile(f"{_BEFORE}(?:{joined})".encode(), options), tuple((name, fixed) for name, _, fixed in rows)


@cache
def _context() -> tuple[Any, tuple[str, ...]]:
    options = re2.Options()
    options.max_mem = 256 << 20
    joined = "|".join(f"(?:{pattern})" for _, pattern in _CONTEXTS)
    return re2.compile(joined.encode(), options), tuple(kind for kind, _ in _CONTEXTS)


# -- what looks like a credential ------------------------------------------------------------------------------------

_WORDS = frozenset({
    "string", "str", "text", "bytes", "integer", "int", "number", "bool", "boolean", "object", "array", "none",
    "null", "nil", "true", "false", "undefined", "optional", "required", "any", "password", "passwd", "pwd",
    "passphrase", "secret", "the", "is", "must", "and", "or", "for", "to", "a", "an", "your", "yes", "no", "not",
    "value", "type", "field", "input", "hidden", "redacted", "masked", "example", "changeme", "placeholder", "self",
    "this", "xxx", "xxxx", "xxxxx", "invalid", "wrong", "incorrect", "missing", "empty", "expired", "reset",
    "protected", "manager", "policy", "hash", "hashed", "authentication",
})
"""Values of a password that are no password: types, prose, placeholders."""
_IDENTIFIER = re.compile(r"[$@%&*!]?[A-Za-z_][\w]*(?:(?:\.|->|::)[A-Za-z_]\w*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def random_looking(value: str) -> bool:
    """Whether a value of 12 characters or more was drawn, and not written: letters and digits in turn, in one word."""
    written = value.startswith(("[masked", REDACTED, "$", "%", "<", "{", "*"))
    if len(value) < 12 or written or _IDENTIFIER.fullmatch(value):
        return False
    if _UUID.fullmatch(value):
        return True
    words = re.split(r"[-_.:/@ ]", value)
    digits, letters = sum(char.isdigit() for char in value), sum(char.isalpha() for char in value)
    if any(_drawn(word) for word in words):
        return True
    if len(value) >= 20 and digits and "." not in value and value[0] != "/" and _turns(value) * 4 >= len(value):
        return True  # base64 with its slashes
    mixed = sum(any(c.isdigit() for c in word) and any(c.isalpha() for c in word) for word in words)
    return len(value) >= 20 and digits >= 3 and letters >= 6 and mixed >= 2 and len(set(value)) >= 12


def _drawn(word: str) -> bool:
    if len(word) < 10 or len(set(word)) < 6:
        return False
    digits = sum(char.isdigit() for char in word)
    if digits == len(word):
        return False
    if digits >= 2:
        return True
    turns = _turns(word)
    return turns >= 3 if digits and turns else len(word) >= 12 and turns * 3 >= len(word)


def _turns(word: str) -> int:
    """How often capitals and others follow each other."""
    return sum(a.isupper() != b.isupper() for a, b in pairwise(word))


_STRUCTURE = re.compile(r"\s*[,:\]}](?:[\s,:\[\]{}0-9.eE+-]|true|false|null|\\[nrt])*")
"""What follows a string of JSON that ends in `password=`: masked, the JSON would be none."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _is_password(value: str, quoted: bool, after: int) -> bool:
    if _STRUCTURE.fullmatch(value) or set(value) == {"9"}:
        return False
    if value.startswith(("[masked", REDACTED, "$", "%", "<", "{", "**")) or value.lower().strip(".,:;!?*") in _WORDS:
        return False
    if quoted:
        return True
    # Unquoted, it may be code: a call, an attribute, an argument that is passed on.
    named = value.isidentifier() and not any(char.isdigit() for char in value)
    return not (_IDENTIFIER.fullmatch(value) or chr(after) in "([" or (named and chr(after) in ",)"))


def _credentials(value: str) -> bool:
    """Whether the base64 of a Basic header holds a user and a password."""
    try:
        plain = binascii.a2b_base64(value + "=" * (-len(value) % 4), strict_mode=False)
        return ":" in plain.decode("utf-8")
    except ValueError:
        return False


def _bearer(value: str) -> bool:
    return any(char.isdigit() for char in value) and not value.isdigit()


_SIGNATURES = re.compile(r"x-(?:amz|goog)-(?:signature|credential|security-token)", re.IGNORECASE)


def _parameter_value(name: str, value: str) -> bool:
    if value.startswith(("[masked", "REDACTED", "$", "%7B", "{", "*")):
        return False
    return _SIGNATURES.fullmatch(name) is not None or name.lower() in PASSWORDS or random_looking(value)


_OF_FLAGS = frozenset({"flag", "option", "argument", "parameter", "file", "stdin", "prompt", "with", "in", "of", "as"})
"""What follows the name of a flag in prose."""
_PASSWORD = re.compile(rf"(?:{_names((*PASSWORDS, 'pass'))})$", re.IGNORECASE)


def _under(name: str, value: str, quoted: bool, after: int) -> bool:
    """Whether a value is a credential by the name that stands before it."""
    return _is_password(value, quoted, after) if _PASSWORD.search(name) else random_looking(value)


_Test = Callable[[str, str, str, int], bool]
_TESTS: Mapping[str, tuple[str, _Test]] = {
    "cookie": ("", lambda name, quote, value, after: any(random_looking(v.partition("=")[2].strip() or v.strip())
                                                         for v in value.split(";"))),
    "password": ("password", lambda name, quote, value, after: _is_password(value, bool(quote.strip("\\")), after)),
    "named": ("", lambda name, quote, value, after: random_looking(value)),
    "variable": ("", lambda name, quote, value, after: not name.endswith(NO_VARIABLES) and random_looking(value)),
    "element": ("", lambda name, quote, value, after: _under(name, value, True, after)),
    "flag": ("", lambda name, quote, value, after: value[0] != "-" and value.lower() not in _OF_FLAGS
                                                   and _under(name, value, bool(quote.strip("\\")), after)),
    "login": ("password", lambda name, quote, value, after: _is_password(value, True, after)),
    "sql": ("password", lambda name, quote, value, after: _is_password(value, True, after)),
    "login in base64": ("basic credentials", lambda name, quote, value, after: _credentials(value)),
    "signature": ("signature", lambda name, quote, value, after: random_looking(value)),
    "bearer": ("bearer token", lambda name, quote, value, after: _bearer(value)),
    "basic": ("basic credentials", lambda name, quote, value, after: _credentials(value)),
    "address": ("password", lambda name, quote, value, after: not value.startswith((REDACTED, "$", "{", "%", "*"))),
    "user": ("token", lambda name, quote, value, after: random_looking(value)),
    "parameter": ("", lambda name, quote, value, after: _parameter_value(name, value)),
}
"""Kind of `_CONTEXTS` -> what its mask says (empty: the name that stands before it), and whether the value is one."""


# -- finding ---------------------------------------------------------------------------------------------------------


@cache
def _either() -> Any:
    """Hints of both patterns in one search, for the many texts that hold neither: those are then never made."""
    options = re2.Options()
    options.max_mem = 64 << 20
    options.never_capture = True
    begun = "|".join(_hint(form.template) for form in FORMS if _PIECE.match(form.template) is None)
    forms = "|".join([f"{_BEFORE}(?:{begun})", *_INNER_HINTS, "PRIVATE KEY", "Private-Lines", "sk-[A-Za-z0-9_-]{20}"])
    names = _names((*NAMES, *PASSWORDS, "cookie", "auth"))
    contexts = (
        rf"(?i)(?:{names})(?:{_QUOTE}\s{{0,8}}[:=,]|>)", rf"(?i)--[A-Za-z0-9._-]*(?:{names}|token|key){_QUOTE}[\s,=]",
        r"(?i)curl\s|sshpass\s|mysql|redis-cli\s|\spassword\s|identified\s",
        rf"_(?:{'|'.join(VARIABLES).upper()}){_QUOTE}\s{{0,8}}[:=,]",
        r"(?i)bearer [ ]{0,3}[A-Za-z0-9._~+/=-]{16}", r"(?i)basic [ ]{0,3}[A-Za-z0-9+/]{8}", r"://[^\s/?#@\"'\\<>]+@",
        r"(?i)(?:key|token|secret|sig|signature|password|passwd|pwd|auth|code|credential|jwt)=",
    )
    return re2.compile("|".join([forms, *(f"(?:{each})" for each in contexts)]).encode(), options)


_INNER_HINTS = (r"[0-9a-f]{24}\.[A-Za-z0-9]{16}", r"8Q~[A-Za-z0-9_~.-]{20}", r"\.atlasv1\.[A-Za-z0-9_-]{20}",
                r":AA[A-Za-z0-9_-]{20}", r"[0-9a-f]{24}-us[0-9]", r":[0-9a-f]{32}", r"[0-9a-f]{24}-[0-9a-f]{8}-",
                "JQQJ9", "AZDO[A-Za-z0-9]{4}", "FFFFNRAL", "_mmk", r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
"""What stands inside the forms that no literal begins."""


def _hint(template: str) -> str:
    """The beginning of a form, up to some 12 characters of its alphabets."""
    found, at, drawn = "", 0, 0
    for piece in _PIECE.finditer(template):
        letters, least, more, most = piece.groups()
        found += f"{re.escape(template[at : piece.start()])}[{ALPHABETS[letters]}]{{{min(int(least), 12)}}}"
        at, drawn = piece.end(), drawn + int(least)
        if drawn >= 12 or more or most:
            break
    return found


def suspicious(data: str | bytes) -> bool:
    """Whether `body` could find anything here (a search, for a whole file at once)."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return _either().search(raw) is not None or _ESCAPES.search(raw) is not None or _own(raw)


_ESCAPES = re.compile(rb"\\/|\\u00[2-7]")
"""Escapes of plain characters in JSON: a credential that holds one is found in the string that it spells."""


def spans(data: bytes) -> list[Span]:
    """Where credentials stand in a text as UTF-8, in order, none over another."""
    known = _either().search(data) is not None
    found = [*(_of_forms(data) if known else ()), *(_of_contexts(data) if known else ()), *_of_this_machine(data)]
    if len(found) < 2:
        return found
    merged: list[Span] = []
    for span in sorted(found, key=lambda each: (each.start, -each.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.name)
        else:
            merged.append(span)
    return merged


_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


def _of_forms(data: bytes) -> Iterator[Span]:
    pattern, rows = _shapes()
    at = 0
    while (match := pattern.search(data, at)) is not None:
        group = match.lastindex
        (start, end), (name, fixed) = match.span(group), rows[group - 1]
        if fixed and end < len(data) and data[end] in _WORD:
            at = start + 1
            continue
        yield Span(start, end, name)
        at = end


def _of_contexts(data: bytes) -> Iterator[Span]:
    pattern, kinds = _context()
    at = 0
    while (match := pattern.search(data, at)) is not None:
        last = match.lastindex
        said, test = _TESTS[kinds[(last - 1) // 3]]
        start, end = match.span(last)
        name, quote, value = (_text(match.group(last - 2)), _text(match.group(last - 1)), _text(match.group(last)))
        stripped = value.rstrip(".,:;!?")
        end -= len(value.encode()) - len(stripped.encode())
        after = data[end] if end < len(data) else 32
        if said == "password" and random_looking(name):
            yield Span(match.start(last - 2), match.end(last - 2), "user")  # of an address: it may be a key
        if stripped and test(name, quote, stripped, after):
            bare = not quote and data[match.end(last - 2)] in b"\"\\" and _NUMBER.fullmatch(stripped)
            yield Span(start, end, NUMBER if bare else said or name.lower())
            at = end
        else:
            # On from behind the name: what follows it may be a credential of another kind.
            at = max(match.end(last - 2), match.start() + 1) if name else max(start, match.start() + 1)


def _text(piece: bytes | None) -> str:
    return (piece or b"").decode("utf-8", "replace")


def _of_this_machine(data: bytes) -> Iterator[Span]:
    pattern = _variables(_environment())
    if pattern is not None:
        yield from (Span(match.start(), match.end(), "a credential of this machine") for match in
        pattern.finditer(data))


def _own(data: bytes) -> bool:
    pattern = _variables(_environment())
    return pattern is not None and pattern.search(data) is not None


VARIABLE = re.compile(r"(?:^|_)(?:(?:API)?KEY(?:_ID)?|TOKEN(?:_[A-Z]+)?|SECRET|PASSWORD|PASSWD)$", re.IGNORECASE)
"""The name of an environment variable whose value is a credential."""


@cache
def _environment() -> tuple[str, ...]:
    """The values of this machine's own credential variables."""
    return tuple(sorted({value for name, value in os.environ.items()
                         if len(value) >= SHORTEST and VARIABLE.search(name) and not value.isdigit()}, key=len,
                         reverse=True))


@lru_cache(maxsize=4)
def _variables(values: tuple[str, ...]) -> Any | None:
    if not values:
        return None
    forms = {form for value in values for form in (value, json.dumps(value)[1:-1], value.replace("/", "\\/"))}
    return re2.compile("|".join(re2.escape(form) for form in sorted(forms, key=len, reverse=True)).encode())


# -- masks -----------------------------------------------------------------------------------------------------------


def mask(size: int, name: str) -> bytes:
    """A mask of that many bytes: what was masked where there is room for it, and asterisks."""
    if name == NUMBER:
        return b"9" * size
    mark = f"[masked: {name}]".encode("ascii", "replace")
    if len(mark) > size:
        mark = SHORT if len(SHORT) <= size else b""
    return mark + b"*" * (size - len(mark))


def count(counts: Counts | None, name: str) -> None:
    """Counts one mask, where anybody counts."""
    if counts is not None:
        counts[name] = counts.get(name, 0) + 1


def masked(data: bytes, found: Sequence[Span], counts: Counts | None = None) -> bytes:
    """The same bytes, as many, with masks at the spans."""
    pieces: list[bytes] = []
    done = 0
    for start, end, name in found:
        pieces += (data[done:start], mask(end - start, name))
        done = end
        count(counts, name)
    return b"".join([*pieces, data[done:]]) if pieces else data


def body(data: bytes, counts: Counts | None = None) -> bytes:
    """The same bytes, as many, without credentials, also where JSON escapes spell them."""
    if _ESCAPES.search(data):
        data = masked(data, _escaped(data), counts)
    return masked(data, spans(data), counts)


_STRINGS = r"\"(?:[^\"\\]|\\.)*(?:\\/|\\u00[2-7][0-9A-Fa-f])(?:[^\"\\]|\\.)*\""
"""A JSON string that holds an escape of a plain character. Between strings no backslash stands, so none is missed."""


@cache
def _strings() -> Any:
    return re2.compile(_STRINGS.encode())


_SPELLED = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)|[^\\]", re.DOTALL)


def _escaped(data: bytes) -> list[Span]:
    """Credentials in JSON strings that spell some of their characters as escapes."""
    found: list[Span] = []
    for match in _strings().finditer(data):
        start, end = match.span()
        found += spelled(data, start + 1, end - 1)
    return found


def spelled(data: bytes, start: int, end: int) -> list[Span]:
    """Credentials in the inside of one JSON string, found in what it spells and placed where it is spelled."""
    try:
        said = json.loads(b'"' + data[start:end] + b'"', strict=False).encode("utf-8", "surrogatepass")
    except ValueError:
        said = None  # no whole string: it is read piece by piece
    if said is not None and not spans(said):
        return []  # nearly always: the places of its characters, which cost far more, are not needed
    plain, places = unescaped(data[start:end])
    return [Span(start + places[a], start + places[b], name) for a, b, name in spans(plain)]


def unescaped(inside: bytes) -> tuple[bytes, list[int]]:
    """The bytes that the inside of a JSON string spells, and for each, and the end, where its spelling begins."""
    if b"\\" not in inside:
        return inside, list(range(len(inside) + 1))
    out = bytearray()
    places: list[int] = []
    text = inside.decode("utf-8", "surrogateescape")
    at = 0
    for piece in _SPELLED.finditer(text):
        written = piece[0]
        size = len(written.encode("utf-8", "surrogateescape"))
        try:
            said = json.loads(f'"{written}"') if written[0] == "\\" else written
        except ValueError:
            said = written
        escape = written[0] == "\\"
        raw = said.encode("utf-8", "surrogatepass" if escape else "surrogateescape")
        places += [at] * len(raw) if escape else range(at, at + size)  # all bytes of an escape begin where it begins
        out += raw
        at += size
    return bytes(out), [*places, at]


def text(value: str, counts: Counts | None = None) -> str:
    """The same text without credentials."""
    raw = value.encode("utf-8", "surrogatepass")
    found = spans(raw)
    return masked(raw, found, counts).decode("utf-8", "surrogatepass") if found else value


# -- headers, addresses, requests ------------------------------------------------------------------------------------

HEADERS: frozenset[str] = frozenset({
    "authorization", "proxy-authorization", "www-authenticate", "authentication", "cookie", "set-cookie", "cookie2",
    "x-api-key", "api-key", "apikey", "x-goog-api-key", "x-goog-iam-authorization-token", "x-amz-security-token",
    "x-amz-signature", "x-amz-credential", "x-functions-key", "ocp-apim-subscription-key", "x-auth", "x-csrf", "x-xsrf",
    "cf-access-jwt-assertion", "x-forwarded-client-cert", "x-session", "session", "jwt",
})
"""Header names that always carry a credential."""

_SECRET = re.compile(
    r"auth(?!or(?:s|ity)?$)|token|secret|(?:^|[-_.])(?:api)?keys?(?:$|[-_.])|apikey|passw|credential|cookie|signature|"
    r"(?:^|[-_.])(?:jwt|sig|sso|pat)(?:$|[-_.])"
)
_HARMLESS = re.compile(r"rate-?limit|tokens(?:$|[-_.])|token-count|idempotency|expose-headers|allow-headers")
"""Counts of tokens, and lists of header names: needed, and no secret."""

QUERY: frozenset[str] = frozenset({
    "key", "api_key", "api-key", "apikey", "token", "access_token", "refresh_token", "id_token", "auth",
    "authorization", "sig", "signature", "client_secret", "secret", "password", "passwd", "pwd", "code", "jwt",
    "subscription-key",
    "x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential",
    "awsaccesskeyid", "credential", "session", "session_token",
})
"""Parameters of a request's own address whose value is a credential, whatever it looks like."""


@lru_cache(maxsize=4096)
def secret_name(name: str) -> bool:
    """Whether a header of this name carries a credential."""
    lowered = name.lower()
    return lowered in HEADERS or (_SECRET.search(lowered) is not None and _HARMLESS.search(lowered) is None)


def headers(
    pairs: Iterable[tuple[str, str]], shapes: bool = True, counts: Counts | None = None
) -> tuple[tuple[str, str], ...]:
    """The same headers, without credentials; `shapes` is false where the values are known to hold none of any form."""
    shown = [(name, _named_mask(name, value, counts) if secret_name(name) else _header(name, value))
             for name, value in pairs]
    if not shapes or not spans("\n".join([value for _, value in shown]).encode("utf-8", "surrogatepass")):
        return tuple(shown)
    return tuple([(name, text(value, counts)) for name, value in shown])


def _header(name: str, value: str) -> str:
    return url(value) if len(name) == 8 and name.lower() == "location" else value


def _named_mask(name: str, value: str, counts: Counts | None) -> str:
    """The mask of a whole value: how long a header or a member was is not told."""
    if value == REDACTED:
        return value
    count(counts, name.lower())
    return REDACTED


@lru_cache(maxsize=1024)
def url(address: str) -> str:
    """The same URL, without credentials in its query, fragment or user part."""
    if "@" in address:
        address = re.sub(r"(?<=//)[^/?#@]*@", f"{REDACTED}@", address, count=1)
    if "?" in address or "#" in address:
        address = re.sub(r"([?&#;])([^=&#;]+)=([^&#;]*)", _parameter, address)
    raw = address.encode("utf-8", "surrogatepass")
    for start, end, _ in reversed(spans(raw)):
        raw = raw[:start] + REDACTED.encode() + raw[end:]
    return raw.decode("utf-8", "surrogatepass")


def _parameter(match: re.Match[str]) -> str:
    name = match[2].lower().replace("%2d", "-").replace("%5f", "_")
    if name in QUERY or name.startswith(("x-amz-s", "x-amz-c")) or secret_name(name):
        return f"{match[1]}{match[2]}={REDACTED}"
    return match[0]


_REQUEST_NAMES = re.compile(rf"(?:[\w-]*[_-])?(?:{_names((*NAMES, *PASSWORDS))})", re.IGNORECASE)
"""Names in a request's own JSON (never in its messages) whose text is a credential, however short: an MCP server's."""


@cache
def _request_names() -> Any:
    return re2.compile(rf"(?i)(?:{_names((*NAMES, *PASSWORDS))})\"".encode())


_HISTORY = frozenset({"messages", "contents", "input", "system", "instructions", "systemInstruction", "prompt"})


def request(value: Any, source: str, counts: Counts | None = None) -> Any:
    """A request's JSON without credentials; `source` is its text, already masked."""
    raw = source.encode("utf-8", "surrogatepass")
    try:
        if _ESCAPES.search(raw):
            value = texts(value, counts)
        if isinstance(value, dict) and _request_names().search(raw):
            return {name: inner if name in _HISTORY else values({name: inner}, counts)[name]
                    for name, inner in value.items()}
    except RecursionError:
        return None  # nested too deeply to be made clean
    return value


def values(value: Any, counts: Counts | None = None) -> Any:
    """The same JSON value with the texts under credential names replaced and the credentials in all others masked."""
    if isinstance(value, dict):
        return {text(name): _named_mask(name, inner, counts) if _named(name, inner) else values(inner, counts)
                for name, inner in value.items()}
    if isinstance(value, list):
        return [values(inner, counts) for inner in value]
    return text(value, counts) if isinstance(value, str) else value


def _named(name: str, value: Any) -> bool:
    return isinstance(value, str) and value != "" and _request_name(name)


@lru_cache(maxsize=4096)
def _request_name(name: str) -> bool:
    return _REQUEST_NAMES.fullmatch(name) is not None


def texts(value: Any, counts: Counts | None = None) -> Any:
    """The same JSON value with the credentials in its texts masked."""
    if isinstance(value, dict):
        return {text(name): texts(_of_member(name, inner, counts), counts) for name, inner in value.items()}
    if isinstance(value, list):
        return [texts(inner, counts) for inner in value]
    return text(value, counts) if isinstance(value, str) else value


def _of_member(name: str, value: Any, counts: Counts | None) -> Any:
    """A member whose name says that it is a credential is looked at with its name."""
    if not isinstance(value, str) or not _request_name(name):
        return value
    if re.fullmatch(_names(PASSWORDS), name, re.IGNORECASE):
        return _named_mask(name, value, counts) if _is_password(value, True, 32) else value
    return _named_mask(name, value, counts) if random_looking(value) else value
