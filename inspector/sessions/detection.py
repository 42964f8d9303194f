"""Finds credentials in a text: by their forms, and by the names before them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

import re2

from inspector.sessions.credential_names import COMMANDS, LOOSE, NAMES, PASSWORDS, QUOTE, QUOTED, VARIABLES
from inspector.sessions.credential_values import NUMERAL, TESTS, any_of, in_humps, key_lines, random_looking
from inspector.sessions.credentials import ALPHABETS, FORMS
from loop_core.client.mask import SHORTEST

SHORT = b"[masked]"
"""The mask of a credential that is too short for a mask with a name."""

NUMBER = "a number as a password"
"""The name of a numeric password, which is masked with nines, because asterisks would make the JSON invalid."""


class CredentialSpan(NamedTuple):
    """A credential at the bytes from `start` to `end` of a text, and the name of its form."""

    start: int
    end: int
    name: str


_PIECE = re.compile(r"\{([A-Za-z])(\d+)(?:(\+)|-(\d+))?\}")

_ESCAPED = r"\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\[[0-9;]{0,16}m"
"""Matches an escape that ends in a letter or digit: of JSON, of a URL, or a terminal's for a colour."""

_BEFORE = rf"(?:^|[^A-Za-z0-9]|{_ESCAPED})"
"""Matches the text before a credential: its beginning, a character that is not a letter or digit, or an escape."""


def pattern_of(template: str) -> str:
    """The regular expression for a form's template."""
    found, at = [], 0
    for piece in _PIECE.finditer(template):
        letters, least, more, most = piece.groups()
        count = f"{{{least},}}" if more else f"{{{least},{most}}}" if most else f"{{{least}}}"
        found += [re.escape(template[at : piece.start()]), f"[{ALPHABETS[letters]}]{count}"]
        at = piece.end()
    return "".join([*found, re.escape(template[at:])])


def _has_exact_length(template: str) -> bool:
    """Whether the last piece of a template has an exact length, so that a longer word does not have this form."""
    last = list(_PIECE.finditer(template))[-1]
    return last.end() == len(template) and last[3] is None


_HASH = r"\$(?:[1567]|g?y|2[abxy]|apr1|argon2i?d?)\$"

OWN_SHAPES: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:-?[A-Za-z0-9+/=\s:,.]|\\+[nr/])*?"
                    r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"),
    # The same form without its last line, as in a cut file or an excerpt.
    ("private key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s]|\\+[nr/])*"),
    ("private key", r"---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----"
                    r"(?:Comment: \\*\"[^\"\\\r\n]*\\*\"|[A-Za-z0-9+/=\s:,.-]|\\+[nr/])*"),
    ("private key", r"Private-Lines: [0-9]{1,3}(?:\\+r)?(?:\\+n|\s)(?:[A-Za-z0-9+/=\s]|\\+[nr/])*"),
    ("API key", r"sk-[A-Za-z0-9_-]*[A-Za-z0-9]{20}[A-Za-z0-9_-]*"),
    ("password hash", rf"{_HASH}(?:[A-Za-z0-9./,=+-]{{1,48}}\$){{1,3}}[A-Za-z0-9./+]{{22,}}"),
)
"""Name and pattern of forms that no template describes: of RFC 7468, RFC 4716 (SSH2), PuTTY's key files, crypt(5) as in
/etc/shadow, Argon2. Line ends may be escaped several times."""

_PREFIX = r"(?:[A-Za-z0-9]+[_.-]){0,6}"

_JOINT = rf"{QUOTE}\s{{0,8}}(?:(?::=?|=>?)\s{{0,8}}|%3D|,\s{{0,8}}{QUOTE}value{QUOTE}\s{{0,8}}:\s{{0,8}})"
"""Matches the text between a name and its value: `: `, `=`, `%3D` in an address within another one, or `", "value": "`
in a header that is an object."""

_COLOUR = r"(?:\x1b|\\+u001[Bb])\[[0-9;]{0,16}m"

_MARKED = r"(?:[*`]{1,3}|\\*[\"'])?"

_APART = (rf"{_MARKED}(?:(?:[ \t]|\\+t){{1,60}}(?:is\s|--?[a-z]+[ =])?|\s{{0,60}}\|\s{{0,60}}|\s?,(?:\s?\\*[\"'])?"
          r"|</(?:td|key)>(?:\s|\\+n){0,8}<(?:td|string)>|\s{1,4}value=|(?:\s|\\+n){1,20}value:\s"
          r"|:\s?[|>][+-]?(?:\s|\\+n){1,20}|:\s?[&'\w ]{1,16}=\s?|:[*_]{1,3}\s?"
          rf"|{_COLOUR}\s?[=:]\s?(?:{_COLOUR})?|\s?[=:]\s?{_COLOUR})({_MARKED})")
"""Matches the text between a name and its value where neither `:` nor `=` alone is between them: columns, cells of
a table, arguments of a command or of a call (`ENV`, `setx`, `set -x`), blocks of YAML, or `=` with colours."""

_LONG_VALUE = r"([A-Za-z0-9_+/.~-]{15}[A-Za-z0-9_+/.~-]+)"

_BETWEEN = rf"{_JOINT}({QUOTE})"

_IN_PROSE = any_of(NAMES).replace("[_-]", "[ _-]")
"""Matches a name, also as `API key`."""

_WITH_VALUE_APART = any_of(name for name in (*NAMES, *PASSWORDS) if name != "pass").replace("[_-]", "[ _-]")
"""The same with the names of passwords; hashes often follow the word `pass`."""

CONTEXTS: tuple[tuple[str, str], ...] = (
    # Keys of LiteLLM's proxy and others, whose letters `-` and `_` interrupt. None begins inside another one, so that a
    # long run takes linear time.
    ("key", rf"(?:^|[^A-Za-z0-9_-]|{_ESCAPED})()()(sk-[A-Za-z0-9_-]{{20,}})"),
    ("cookie", rf"(?i){_BEFORE}((?:set[_-]?)?cookie){_BETWEEN}{QUOTED}"),
    ("named", rf"(?i){_BEFORE}({_PREFIX}(?:{_WITH_VALUE_APART})){_APART}{_LONG_VALUE}"),
    ("variable", rf"{_BEFORE}([A-Z][A-Z0-9_]*_(?:{'|'.join(VARIABLES).upper()})){_APART}{_LONG_VALUE}"),
    ("password", rf"(?i){_BEFORE}({_PREFIX}(?:{any_of(PASSWORDS)})){_JOINT}(\\*\")([^\"\\\r\n]+)"),
    ("password", rf"(?i){_BEFORE}({_PREFIX}(?:{any_of(PASSWORDS)})){_JOINT}(\\*')([^'\"\\\r\n]+)"),
    ("password", rf"(?i){_BEFORE}({_PREFIX}(?:{any_of(PASSWORDS)})){_JOINT}(){LOOSE}"),
    ("named", rf"(?i){_BEFORE}({_PREFIX}(?:{_IN_PROSE})){_BETWEEN}(?:(?:bearer|basic|token|api-?key)\s)?{LOOSE}"),
    ("variable", rf"{_BEFORE}([A-Z][A-Z0-9_]*_(?:{'|'.join(VARIABLES).upper()})){_BETWEEN}{LOOSE}"),
    ("list", rf"{_BEFORE}([A-Z][A-Z0-9_]*_(?:{'|'.join(VARIABLES).upper()})S){_BETWEEN}([A-Za-z0-9_./+=~:,-]+)"),
    ("member", rf"(?:^|[^A-Za-z0-9_.-])(token){QUOTE}\s{{0,8}}[:=]\s{{0,8}}(\\*[\"'])([A-Za-z0-9_./+=~-]+)"),
    ("member", rf"(?:^|[^A-Za-z0-9_.-]|{_ESCAPED})(token)():[ \t]{{1,4}}([A-Za-z0-9_./+=~-]+)"),  # YAML
    ("camel password", rf"{_BEFORE}({in_humps(PASSWORDS)}){_JOINT}(\\*[\"'])([^\s\"'\\]+)"),
    ("camel", rf"{_BEFORE}({in_humps(NAMES)}){_BETWEEN}{LOOSE}"),
    ("element", rf"(?i)form-data;\s?name=\\*\"({_PREFIX}(?:{any_of((*PASSWORDS, *NAMES))}))\\*\""
                r"(?:\r?\n|(?:\\+r)?\\+n){2}()([^\s\"'\\<>]+)"),
    ("element", rf"(?i)<(?:[A-Za-z0-9_-]+:)?({_PREFIX}(?:{any_of((*PASSWORDS, *NAMES))}))>()([^<>\"\r\n]+)<"),
    ("flag", rf"(?i)--({_PREFIX}(?:{any_of((*PASSWORDS, *NAMES))}|pass|token|key))(?:=|\s{{1,4}})({QUOTE}){LOOSE}"),
    ("flag", rf"(?i)--({_PREFIX}(?:{any_of((*PASSWORDS, *NAMES))}|pass|token|key))\\*[\"']\s{{0,8}},\s{{0,8}}"
             rf"(\\*[\"']){LOOSE}\\*[\"']\s{{0,8}}[,\])]"),
    ("user", rf"(?i)(?:wandb\s+login|snyk\s+auth|authtoken)\s+(?:--?[a-z=-]+\s+)*()({QUOTE}){LOOSE}"),
    ("cookies", r"\s-b[ =]?()(\\*[\"'])([\w.-]{1,64}=[^\"'\\\r\n]+)"),  # curl
    ("login", rf"(?i)(?:echo|printf)\s+(?:-n\s+)?()({QUOTE}){LOOSE}{QUOTE}\s*\|[^\r\n|]*"
              r"(?:--password-stdin|sudo\s+-S|secrets?\s+(?:put|set)|env\s+add|chpasswd)"),
    ("login", r"()():([^\s:/@\"'\\<>]+)@(?:tcp6?|unix)\("),
    ("login", rf"(?i)(?:sqlplus\s(?:-\w+\s)*|jdbc:oracle:\w+:){QUOTE}[\w$#.-]+()()/([^\s/@\"'\\<>]+)@"),
    # MySQL and Oracle say IDENTIFIED BY, PostgreSQL says PASSWORD.
    ("sql", r"(?i)(identified\s+(?:with\s+\w+\s+)?by|password)\s+(\\*')([^'\"\\\r\n]+)"),
    # The member `auth` of Docker's config.json.
    ("login in base64", rf"(?i){_BEFORE}(auth){_BETWEEN}([A-Za-z0-9+/]{{8,}}={{0,2}})"),
    # AWS Signature Version 4, in an Authorization header.
    ("signature", r"(?i)[, ](signature)()=([A-Za-z0-9+/%]{32,}={0,2})"),
    ("signature", r"(?i)[, ](response)()=\\*\"([0-9a-f]{32,64})\\*\""),  # Digest, RFC 7616
    ("bearer", r"()(?i)(?:bearer)()[ ]{1,4}([A-Za-z0-9._~+/=-]{16,})"),
    ("basic", r"()(?i)(?:basic)()[ ]{1,4}([A-Za-z0-9+/]{8,}={0,2})"),
    ("address", r"[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#@:\"'\\<>]*)():([^\s/?#@\"'\\<>]+)@"),
    ("user", r"()[A-Za-z][A-Za-z0-9+.-]*://()([^\s/?#@:\"'\\<>]{12,})@"),
    # An address in a parameter of another address.
    ("address", r"(?i)%3A%2F%2F([^\s/?#@:\"'\\<>%&]*)()%3A([^\s/?#@\"'\\<>%&]+)%40"),
    ("user", r"(?i)()%3A%2F%2F()([^\s/?#@:\"'\\<>%&]{12,})%40"),
    ("parameter", r"(?i)[?&;]([\w.-]*(?:key|token|secret|sig|signature|password|passwd|pwd|auth|code|credential|jwt))"
                  r"()=([^&\s\"'\\#<>;]+)"),
)
"""Credentials that are recognised by the text before them: a kind of `TESTS`, and a pattern whose three groups are
name, quote and value."""


def _compile(pattern: str, captures: bool = True, megabytes: int = 256) -> Any:
    options = re2.Options()
    options.max_mem = megabytes << 20  # with the default of 8 MB, RE2 would use its slow automaton for the repetitions
    options.never_capture = not captures
    return re2.compile(pattern.encode(), options)


FORMS_AT_ONCE = 40
"""The number of forms that share a pattern. A single pattern for all forms takes five times the time and memory,
because its states are large, and nearly every character of a credential needs a new state."""


@cache
def _form_patterns() -> tuple[tuple[Any, ...], tuple[tuple[str, bool], ...]]:
    """The patterns, and for each of their groups the name of its form and whether the form's length is fixed."""
    rows = [(form.name, pattern_of(form.template), _has_exact_length(form.template)) for form in FORMS]
    rows += [(name, pattern, False) for name, pattern in OWN_SHAPES]
    joined = ["|".join(f"({pattern})" for _, pattern, _ in rows[first : first + FORMS_AT_ONCE])
              for first in range(0, len(rows), FORMS_AT_ONCE)]
    patterns = tuple(_compile(f"{_BEFORE}(?:{each})", megabytes=256 // len(joined)) for each in joined)
    return patterns, tuple((name, fixed) for name, _, fixed in rows)


_LONG = 200
"""The number of characters of a value that a pattern matches; the rest of a longer one is matched once, since a word of
many names, or a line of them, would take quadratic time."""
_RUN = re.compile(r"(\[(?:\\.|[^\]])+\])\+\)$")
"""Matches the end of a pattern whose value is a run of the characters of one class."""


@cache
def _context_pattern(contexts: tuple[tuple[str, str], ...]) -> Any:
    bounded = rf"\1{{1,{_LONG}}})"
    return _compile("|".join(f"(?:{_RUN.sub(bounded, pattern)})" for _, pattern in contexts))


@cache
def _rest_of(pattern: str) -> Any:
    """The pattern of the characters of a row's value; None if its pattern bounds it."""
    found = _RUN.search(pattern)
    return found and re.compile(f"{found[1]}*".encode())


@cache
def _command_hints() -> tuple[Any, tuple[Any, ...]]:
    """A pattern for the hints of all commands, and one for the hint of each."""
    hints = [command.hint for command in COMMANDS]
    return _compile(f"(?i){'|'.join(hints)}"), tuple([_compile(f"(?i){hint}", megabytes=16) for hint in hints])


def _context_groups(data: bytes) -> Iterator[tuple[tuple[str, str], ...]]:
    """The patterns that are searched together. A command has its own search, because in a common one every match after
    a command would wait for its option up to the end of the line."""
    yield CONTEXTS
    every, hints = _command_hints()
    for command, hint in zip(COMMANDS, hints, strict=True) if every.search(data) is not None else ():
        if hint.search(data) is not None:
            yield (("login", rf"(?i)(?:{command.before})(){command.value}"),)


@cache
def _hint_pattern() -> Any:
    """A cheap pattern for the beginnings of all forms and contexts. Most texts have no match, and then the full
    patterns are never compiled."""
    tails: dict[str, list[str]] = {}  # forms with the same continuation share it, which saves 4 ms
    for form in FORMS:
        if _PIECE.match(form.template) is None:
            head, tail = _hint(form.template)
            tails.setdefault(tail, []).append(head)
    begun = "|".join(f"(?:{'|'.join(heads)}){tail}" for tail, heads in tails.items())
    forms = "|".join([f"{_BEFORE}(?:{begun})", *_INNER_HINTS, "PRIVATE KEY", "Private-Lines", "sk-[A-Za-z0-9_-]{20}",
                      rf"{_HASH}[A-Za-z0-9./,=+-]{{1,48}}\$"])
    names = f"{_IN_PROSE}|{any_of((*PASSWORDS, 'cookie', 'auth'))}"
    contexts = (
        rf"(?i)(?:{names})(?:{QUOTE}\s{{0,8}}(?:[:=,]|%3D)|>|{_APART}[A-Za-z0-9_+/.~-]{{16}})",
        rf"(?i)--[A-Za-z0-9._-]*(?:{names}|token|key){QUOTE}[\s,=]",
        rf"(?i){'|'.join(command.hint for command in COMMANDS)}",
        r"\s-b[ =]?\\*[\"'][\w.-]{1,64}=|[, ](?i:response)=\\*\"[0-9A-Fa-f]{32}",
        r"(?i)identified\s|--password-stdin|chpasswd|snyk\s+auth|authtoken\s|@(?:tcp6?|unix)\(|sqlplus\s|jdbc:oracle:",
        rf"token{QUOTE}\s{{0,8}}[:=]\s{{0,8}}{QUOTE}[A-Za-z0-9_./+=~-]{{20}}",
        rf"_(?:{'|'.join(VARIABLES).upper()})(?:{QUOTE}\s{{0,8}}[:=,]|S{QUOTE}\s{{0,8}}[:=])",
        rf"(?i)_(?:{'|'.join(VARIABLES)}){_APART}[A-Za-z0-9_+/.~-]{{16}}",
        r"(?i)form-data;\s?name=|sudo\s+-S|secrets?\s+(?:put|set)\s|\senv\s+add\s",
        r"(?i)bearer [ ]{0,3}[A-Za-z0-9._~+/=-]{16}", r"(?i)basic [ ]{0,3}[A-Za-z0-9+/]{8}", r"://[^\s/?#@\"'\\<>]+@",
        r"(?i)%3A%2F%2F[^\s/?#@\"'\\<>&]+%40",
        r"(?i)(?:key|token|secret|sig|signature|password|passwd|pwd|auth|code|credential|jwt)=",
    )
    return _compile("|".join([forms, *(f"(?:{each})" for each in contexts)]), captures=False)


_INNER_HINTS = (r"[0-9a-f]{24}\.[A-Za-z0-9_-]{16}", r"8Q~[A-Za-z0-9_~.-]{20}", r"\.atlasv1\.[A-Za-z0-9_-]{20}",
                r":AA[A-Za-z0-9_-]{20}", r"[0-9a-f]{24}-us[0-9]", r":[0-9a-f]{32}", r"[0-9a-f]{24}-[0-9a-f]{8}-",
                "JQQJ9", "AZDO[A-Za-z0-9]{4}", "FFFFNRAL", "_mmk", r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
"""Patterns of the literal parts of forms that do not begin with a literal."""


def _hint(template: str) -> tuple[str, str]:
    """The beginning of a form up to about 10 characters of its alphabets, because 9 also occur in harmless texts. The
    last run of these characters is returned separately."""
    head, tail, at, drawn = "", "", 0, 0
    for piece in _PIECE.finditer(template):
        letters, least, more, most = piece.groups()
        head += tail + re.escape(template[at : piece.start()])
        tail = f"[{ALPHABETS[letters]}]{{{min(int(least), 10)}}}"
        at, drawn = piece.end(), drawn + int(least)
        if drawn >= 10 or more or most:
            break
    return head, tail


def suspicious(data: str | bytes) -> bool:
    """Whether a text may contain credentials; if not, `redact.body` can be skipped."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return _hint_pattern().search(raw) is not None or ESCAPES.search(raw) is not None or any(_of_this_machine(raw))


ESCAPES = re2.compile(rb"\\/|\\u00[2-7]")
"""Matches JSON escapes of plain characters, which hide a credential from a search of the raw text."""


def spans(data: bytes) -> list[CredentialSpan]:
    """The places of credentials in a UTF-8 text, in order, without overlaps."""
    pattern_spans: tuple[CredentialSpan, ...] = ()
    if _hint_pattern().search(data) is not None:
        contexts = (span for group in _context_groups(data) for span in _of_contexts(data, group))
        lines = (CredentialSpan(start, end, "private key") for start, end in key_lines(data))
        pattern_spans = (*_of_forms(data), *contexts, *lines)
    found = [*pattern_spans, *_of_this_machine(data)]
    if len(found) < 2:
        return found
    merged: list[CredentialSpan] = []
    # Among spans with the same start the longest comes first, so that the mask has its name.
    for span in sorted(found, key=lambda each: (each.start, -each.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = CredentialSpan(last.start, max(last.end, span.end), last.name)
        else:
            merged.append(span)
    return merged


_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


def _of_forms(data: bytes) -> Iterator[CredentialSpan]:
    patterns, rows = _form_patterns()
    matches = [pattern.search(data) for pattern in patterns]
    at = 0
    while True:
        for number, match in enumerate(matches):
            if match is not None and match.start() < at:
                matches[number] = patterns[number].search(data, at)
        found = [(match.start(), match.start(match.lastindex), number)
                 for number, match in enumerate(matches) if match is not None]
        if not found:
            return
        # The choice of a single pattern: the match that begins first, then the one with the shorter text before it, and
        # only then the order of the table. The last letter of an escape could also be the first letter of another form.
        number = min(found)[-1]
        match = matches[number]
        group = match.lastindex
        (start, end), (name, fixed) = match.span(group), rows[number * FORMS_AT_ONCE + group - 1]
        # A longer word does not have this form, but another form may begin inside it.
        if fixed and end < len(data) and data[end] in _WORD:
            at = start + 1
            continue
        yield CredentialSpan(start, end, name)
        at = end


def _of_contexts(data: bytes, contexts: tuple[tuple[str, str], ...]) -> Iterator[CredentialSpan]:
    at, refused = 0, [0] * len(contexts)  # by row of the table: the end of the last long value that is no credential
    while (match := _context_pattern(contexts).search(data, at)) is not None:
        last = match.lastindex
        row = (last - 1) // 3  # each pattern has three groups
        label, test = TESTS[contexts[row][0]]
        start, end = match.span(last)
        rest = _rest_of(contexts[row][1]) if end - start >= _LONG else None
        within = rest is not None and start < refused[row]
        if rest is not None and not within:
            end = rest.match(data, start).end()
        quote = (match.group(last - 1) or b"").decode("utf-8", "replace")
        if data[end : end + 1] == b"\\":
            end = _past_escapes(data, end, quote if label == "password" else "")
        name, value = ((match.group(last - 2) or b"").decode("utf-8", "replace"),
                       re.sub(_ESCAPE, "/", data[start:end].decode("utf-8", "replace")))
        # Punctuation at the end belongs to the sentence.
        stripped = value.rstrip(".,:;!?")
        end -= len(value.encode()) - len(stripped.encode())
        after = data[end] if end < len(data) else 32  # a blank stands for the end of the text
        if label == "password" and random_looking(name):
            # The user name in an address may be a key as well.
            yield CredentialSpan(match.start(last - 2), match.end(last - 2), "user")
        if stripped and not within and test(name, quote, stripped, after):
            bare = not quote and data[match.end(last - 2)] in b"\"\\" and NUMERAL.fullmatch(stripped)
            yield CredentialSpan(start, end, NUMBER if bare else label or name.lower())
            at = end
        else:
            refused[row] = max(refused[row], end if rest is not None else 0)
            # Continue after the name, since a credential of another kind may follow it.
            at = max(match.end(last - 2), match.start() + 1) if name else max(start, match.start() + 1)


_ESCAPE = r"\\+(?:/|u00(?:2[BbDdFf]|3[0-9Dd]|[46][0-9A-Fa-f]|[57][0-9Aa]|5[Ff]))"
"""Matches a JSON escape of a letter, a digit or one of `+-/=@_`, which may be inside a value: PHP escapes `/`, .NET `+`
and Gson `=`."""
_MORE = re.compile(rf"(?:{_ESCAPE}[^\s\"'\\,;<>(){{}}\[\]&]*)+".encode())
_STRING_ENDS = re.compile(rb"(\\*)[\"\r\n]")


def _past_escapes(data: bytes, at: int, quote: str) -> int:
    """The end of a value that reaches a backslash at `at`: after the escapes of plain characters or, in a `quote`,
    before the quote that closes the string, at most `_LONG` characters further."""
    if quote.endswith('"'):
        # In JSON within JSON, every level doubles the backslashes before a quote and adds one.
        depth = len(quote) - 1
        for found in _STRING_ENDS.finditer(data, at, at + _LONG):
            if len(found[1]) % (2 * depth + 2) == depth:
                return found.end() - 1 - depth
    more = _MORE.match(data, at)
    return at if more is None else more.end()


def _of_this_machine(data: bytes) -> Iterator[CredentialSpan]:
    pattern = _variables(_environment())
    if pattern is not None:
        for match in pattern.finditer(data):
            yield CredentialSpan(match.start(), match.end(), "a credential of this machine")


VARIABLE = re.compile(r"(?:^|_)(?:(?:API)?KEY(?:_ID)?|TOKEN(?:_[A-Z]+)?|SECRET|PASSWORD|PASSWD)$", re.IGNORECASE)
"""Matches the name of an environment variable whose value is a credential."""


@cache
def _environment() -> tuple[str, ...]:
    return tuple(sorted({value for name, value in os.environ.items()
                         if len(value) >= SHORTEST and VARIABLE.search(name) and not value.isdigit()}, key=len,
                         reverse=True))


@lru_cache(maxsize=4)
def _variables(values: tuple[str, ...]) -> Any | None:
    if not values:
        return None
    # The plain value, and its spellings in JSON: escaped, or with escaped slashes.
    forms = {form for value in values for form in (value, json.dumps(value)[1:-1], value.replace("/", "\\/"))}
    return re2.compile("|".join(re2.escape(form) for form in sorted(forms, key=len, reverse=True)).encode())
