"""Decides whether a value where a credential is expected is one, and not a placeholder or code."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from inspector.sessions.credential_names import PASSWORDS
from inspector.sessions.credentials import FORMS

REDACTED = "REDACTED"
"""The mask of the whole value of a header, a parameter or a JSON member."""


def any_of(names: Iterable[str]) -> str:
    """A pattern for any of these names, with any separator between their words."""
    return "|".join(name.replace("_", "[_-]?") for name in names)


def in_humps(names: Iterable[str]) -> str:
    """A pattern for any of these names as the end of a word in which each part begins with a capital, such as
    `openaiApiKey`. Names of one part that end other words too (`bypass`, `isSecret`) are left out, except passwords."""
    joined = ("".join(map(str.title, name.split("_"))) for name in names if "_" in name or name in PASSWORDS)
    return f"[a-z][A-Za-z0-9]*(?:{'|'.join(joined)})".replace("Api", "(?:Api|API)")


NO_VARIABLES: tuple[str, ...] = ("CACHE_KEY", "PRIMARY_KEY", "FOREIGN_KEY", "SORT_KEY", "PARTITION_KEY",
    "PUBLIC_KEY", "NEXT_TOKEN", "PAGE_TOKEN")
"""The ends of variable names that match the patterns but name no credential."""

_WORDS = frozenset({
    "string", "str", "text", "bytes", "integer", "int", "number", "bool", "boolean", "object", "array", "none",
    "null", "nil", "true", "false", "undefined", "optional", "required", "any", "password", "passwd", "pwd",
    "passphrase", "secret", "the", "is", "must", "and", "or", "for", "to", "a", "an", "your", "yes", "no", "not",
    "value", "type", "field", "input", "hidden", "redacted", "masked", "example", "changeme", "placeholder", "self",
    "this", "xxx", "xxxx", "xxxxx", "invalid", "wrong", "incorrect", "missing", "empty", "expired", "reset",
    "protected", "manager", "policy", "hash", "hashed", "authentication",
})
"""Values after the name of a password that are not passwords: types, prose, placeholders."""

_MARKS = ".,:;!?*`'\""
"""Characters around a word in prose and Markdown, which are removed before a value is compared with `_WORDS`."""

# Few files need these patterns, so `re` compiles them at their first use, which saves 1 ms of every start.
_IDENTIFIER = r"[$@%&*!]?[A-Za-z_][\w]*(?:(?:\.|->|::)[A-Za-z_]\w*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
_UUID = r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"


def random_looking(value: str) -> bool:
    """Whether a value of 12 characters or more looks random: letters and digits mixed within one word."""
    # a mask, a variable or a placeholder; or the name of a session of OpenClaw: `agent:main:subagent:` and an id
    written = value.startswith(("[masked", REDACTED, "$", "%", "<", "{", "*", "agent:"))
    words = re.split(r"[-_.:/@ ]", value)
    if len(value) < 12 or written:
        return False
    if re.fullmatch(_IDENTIFIER, value) and not any(len(word) >= 32 and _is_random(word) for word in words):
        return False
    # Only values under a credential's name reach this test, and the keys of some services are UUIDs (fal).
    if re.fullmatch(_UUID, value):
        return True
    digits, letters = sum(char.isdigit() for char in value), sum(char.isalpha() for char in value)
    if any(_is_random(word) for word in words):
        return True
    if len(value) >= 20 and digits and "." not in value and value[0] != "/" and _case_changes(value) * 4 >= len(value):
        return True  # base64 with its slashes
    mixed = sum(any(c.isdigit() for c in word) and any(c.isalpha() for c in word) for word in words)
    return len(value) >= 20 and digits >= 3 and letters >= 6 and mixed >= 2 and len(set(value)) >= 12


def _is_random(word: str) -> bool:
    if len(word) < 10 or len(set(word)) < 6:
        return False
    digits = sum(char.isdigit() for char in word)
    if digits == len(word):  # a number, a time or an id
        return False
    if digits >= 2:
        return True
    turns = _case_changes(word)
    return turns >= 3 if digits and turns else len(word) >= 12 and turns * 3 >= len(word)


def _case_changes(word: str) -> int:
    return sum(a.isupper() != b.isupper() for a, b in pairwise(word))


_STRUCTURE = r"\s*[,:\]}](?:[\s,:\[\]{}0-9.eE+-]|true|false|null|\\[nrt])*"
"""Matches JSON structure after a string that ends in `password=`; a mask there would break the JSON."""

_ROUTE = r"(?:https?:/)?(?:/[a-z0-9_.:-]{1,24}){2,}/?"
"""Matches a path of short words in lower case, alone or in an address."""

NUMERAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def is_password(value: str, quoted: bool, after: int) -> bool:
    """Whether the value of a password field is a password, and not code or structure. `after` is the code of the
    character after it."""
    # Nines are the mask of a numeric password.
    if re.fullmatch(_STRUCTURE, value) or set(value) == {"9"}:
        return False
    if value.startswith(("[masked", REDACTED, "$", "%", "<", "{", "**")) or value.lower().strip(_MARKS) in _WORDS:
        return False
    if quoted:
        return True
    # An unquoted value may be code: a call, an attribute, or a variable as an argument.
    named = value.isidentifier() and not any(char.isdigit() for char in value)
    return not (re.fullmatch(_IDENTIFIER, value) or chr(after) in "([" or (named and chr(after) in ",)"))


def _credentials(value: str) -> bool:
    """Whether the base64 of a Basic header holds a user and a password."""
    try:
        plain = binascii.a2b_base64(value + "=" * (-len(value) % 4), strict_mode=False)
        return ":" in plain.decode("utf-8")
    except ValueError:
        return False


_SIGNATURES = r"(?i)x-(?:amz|goog)-(?:signature|credential|security-token)"


def _parameter_value(name: str, value: str) -> bool:
    if value.startswith(("[masked", "REDACTED", "$", "%7B", "{", "*")):
        return False
    return re.fullmatch(_SIGNATURES, name) is not None or name.lower() in PASSWORDS or random_looking(value)


_PROSE_AFTER_FLAGS = frozenset({
    "flag", "option", "argument", "parameter", "file", "stdin", "prompt", "with", "in", "of", "as",
})
"""Words that follow the name of a flag in prose and are not its value."""

_PASSWORD = rf"(?i)(?:{any_of((*PASSWORDS, 'pass'))})$"


def _is_credential(name: str, value: str, quoted: bool, after: int) -> bool:
    return is_password(value, quoted, after) if re.search(_PASSWORD, name) else random_looking(value)


_Test = Callable[[str, str, str, int], bool]

# The first piece of a key of these forms, cut by a limit, is found together with the other piece.
_WITH_FORM = tuple(form.template.partition("{")[0] for form in FORMS if form.template.startswith("sk-"))

TESTS: Mapping[str, tuple[str, _Test]] = {
    "key": ("API key", lambda name, quote, value, after: random_looking(value) and not value.startswith(_WITH_FORM)),
    "cookie": ("", lambda name, quote, value, after: any(random_looking(v.partition("=")[2].strip() or v.strip())
                                                         for v in value.split(";"))),
    "cookies": ("cookie", lambda name, quote, value, after: any(random_looking(v.partition("=")[2].strip())
                                                                for v in value.split(";"))),
    "list": ("", lambda name, quote, value, after: not name[:-1].endswith(NO_VARIABLES)
                                                   and any(map(random_looking, value.split(",")))),
    # a token of log probabilities is shorter
    "member": ("token", lambda name, quote, value, after: len(value) >= 20 and random_looking(value)),
    "password": ("password", lambda name, quote, value, after: is_password(value, bool(quote.strip("\\")), after)),
    # Translations, forms and tables of routes have such names too, over prose and paths: `resetPassword`.
    # Switches have them too, over one digit: `showPassword="1"`.
    "camel password": ("password", lambda name, quote, value, after: len(value) > 1
                                                                     and re.search("[0-9]", value) is not None
                                                                     and re.fullmatch(_ROUTE, value) is None
                                                                     and is_password(value, True, after)),
    # In code a value without a digit is often a name in the same spelling.
    "camel": ("", lambda name, quote, value, after: re.search("[0-9]", value) is not None and random_looking(value)),
    "named": ("", lambda name, quote, value, after: random_looking(value)),
    "variable": ("", lambda name, quote, value, after: not name.endswith(NO_VARIABLES) and random_looking(value)),
    "element": ("", lambda name, quote, value, after: _is_credential(name, value, True, after)),
    "flag": ("", lambda name, quote, value, after: value[0] != "-" and value.lower() not in _PROSE_AFTER_FLAGS
                                                   and _is_credential(name, value, bool(quote.strip("\\")), after)),
    "login": ("password", lambda name, quote, value, after: is_password(value, True, after)),
    "sql": ("password", lambda name, quote, value, after: is_password(value, True, after)),
    "login in base64": ("basic credentials", lambda name, quote, value, after: _credentials(value)),
    "signature": ("signature", lambda name, quote, value, after: random_looking(value)),
    "bearer": ("bearer token", lambda name, quote, value, after: re.search("[0-9]", value) is not None
                                                                    and not value.isdigit()),
    "basic": ("basic credentials", lambda name, quote, value, after: _credentials(value)),
    "address": ("password", lambda name, quote, value, after: not value.startswith((REDACTED, "$", "{", "%", "*"))),
    "user": ("token", lambda name, quote, value, after: random_looking(value)),
    "parameter": ("", lambda name, quote, value, after: _parameter_value(name, value)),
}
"""Kind of `inspector.sessions.detection.CONTEXTS` -> the name in the mask, and a test whether the value is a
credential. If the name is empty, the mask has the name before the value."""


# -- The lines of a private key that has other text around each line: line numbers, marks of a diff, quotes ----------


_BEGINS = re.compile(rb"----(?:-BEGIN|\s?BEGIN SSH2) [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-Lines: [0-9]+")
_ENDS = re.compile(rb"----(?:-END|\s?END SSH2) [A-Z0-9 ]*PRIVATE KEY|Private-MAC: ")
_TOKEN = re.compile(
    rb"(?P<base64>[A-Za-z0-9+/](?:[A-Za-z0-9+/]|\\++/){15,}={0,2})"  # PHP escapes slashes
    rb"|(?P<limit>[{}]|\\*+\":|---- ?(?:-BEGIN|BEGIN SSH2|-END|END SSH2) |Private-MAC)"
    rb"|\\++(?:u[0-9A-Fa-f]{4}|.)?", re.DOTALL)  # its letters are no base64
_LINE_END = re.compile(rb"[\r\n]|\\[nr]|\"\s?,\s?\\*\"")
_MOST_BETWEEN = 120
"""The largest number of bytes between the base64 of two lines."""
_WHOLE_LINE = 40
_MOST_BEFORE_END = 8_000
"""The number of bytes before the last line that are searched for the lines of a key whose first line is missing."""


def key_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """The places of the base64 of private keys, line by line."""
    for begin in _BEGINS.finditer(data):
        yield from _following(data, begin.end(), _TOKEN.finditer(data, begin.end()))
    after = 0
    for end in _ENDS.finditer(data):
        start = max(after, end.start() - _MOST_BEFORE_END)
        tokens = list(_TOKEN.finditer(data, start, end.start()))[start > after :]  # the first one may be a part
        yield from _following(data, end.start(), reversed(tokens))
        after = end.end()


def _following(data: bytes, at: int, tokens: Iterator[re.Match[bytes]]) -> Iterator[tuple[int, int]]:
    """The lines of base64 from a place on, forwards or backwards."""
    for token in tokens:
        start, end = token.span()
        first, last = (at, start) if start >= at else (end, at)
        if token["limit"] or last - first > _MOST_BETWEEN:
            return
        if token["base64"] and _LINE_END.search(data, first, last) and (
                end - start >= _WHOLE_LINE or random_looking(token[0].decode())):
            yield start, end
            at = end if start >= at else start
