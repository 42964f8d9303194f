"""Parses a filter expression: `stop:max_tokens held attempt>1 & (tool:write_* | ~t report) !marked`.

Two terms side by side must both hold, as with `&`; `|` means either, `!` negates, brackets group. The syntax is that of
mitmproxy's filters (https://docs.mitmproxy.org/stable/concepts/filters/). A word that is neither a term nor similar to
one is searched in the text; so is anything in double quotes. An error names its column, counted from 1.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import translate
from typing import NamedTuple

from inspector.report.facts import View
from inspector.report.filter_terms import FLAGS, NUMBERS, PATTERNS, WORDS, FilterPlace, StepContext
from inspector.report.filter_words import (
    ALIASES,
    CONNECTIVES,
    closed_values,
    is_misspelt,
    is_provider_word,
    names,
    part_note,
    term_message,
    term_of,
    term_of_value,
    text_note,
    value_message,
)
from loop_core.errors import CallerError
from loop_core.turn.continuation import Method


class FilterError(CallerError):
    """The expression is invalid; `column` counts from 1."""

    def __init__(self, column: int, message: str) -> None:
        self.column = column
        super().__init__(message)

    def __str__(self) -> str:
        return f"column {self.column}: {self.args[0]}"


class UnknownTermError(FilterError):
    """A word of the expression is not a term; `typed` is the word with its value, if it has one."""

    def __init__(self, column: int, word: str, offer: str = "", typed: str = "") -> None:
        self.word, self.typed = word, typed or word
        super().__init__(column, term_message(word, self.typed, offer))


Test = Callable[[FilterPlace], bool]


class Filter(NamedTuple):
    """A parsed expression."""

    text: str
    matches: Test
    """The function that decides whether a step or a row matches. It caches results for the answers of one session."""
    patterns: frozenset[str] = frozenset()
    """The texts that the expression searches, by the letters of `PATTERNS`."""
    searched: tuple[str, ...] = ()
    """The words that are not terms and are searched in the text."""
    values: tuple[tuple[str, str], ...] = ()
    """The values that are searched whole, each with its term, such as `("model", "gpt-5")`."""


OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, ">": operator.gt, "<": operator.lt, "=": operator.eq,
    ":": operator.eq,
}
WILDCARDS = "*?["
"""The wildcard characters of a value (`fnmatch`)."""
DEEPEST = 100
"""The deepest nesting of brackets and negations: each nests three of the 1,000 calls that Python allows."""
MOST_TERMS = 1_000
"""The largest number of terms. A word that is not a term takes half a millisecond, since it may be a misspelt one."""
_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<mark>[()&|!])
  | ~(?P<pattern>\w+)\s+(?P<regex>"(?:[^"\\]|\\.)*"|[^\s()]+)
  | (?P<name>[A-Za-z_][\w.]*)(?:(?P<op>>=|<=|!=|[:=<>])(?P<value>"(?:[^"\\]|\\.)*"|[^\s()&|]*)|(?=[\s()&|!~"]|\Z))
  | (?P<bare>"(?:[^"\\]|\\.)*"|[^\s()&|!~"=<>:%][^\s()&|"=<>:]*)
""", re.VERBOSE)


class _Token(NamedTuple):
    at: int
    mark: str
    """A bracket or a connective; empty for a term."""
    test: Test | None = None


def parse(text: str) -> Filter:
    """Parses an expression. Raises `FilterError` if the expression is invalid; the column says where."""
    words = text.split()
    if not words:
        raise FilterError(1, "empty; expected a term such as stop:max_tokens or held")
    # A verdict of several words, typed as the row prints it, such as END NOT RECORDED.
    verdict = term_of(" ".join(words)) if len(words) > 1 else ""
    return _parse(verdict or text)._replace(text=text.strip())


def parse_typed(text: str) -> Filter:
    """Parses a text typed to narrow a list: a word similar to a term, such as `files`, is searched as text."""
    with suppress(UnknownTermError):
        return parse(text)
    ends = [each.end() for each in _TOKEN.finditer(text) if _is_near(each)]
    try:
        return parse(_TOKEN.sub(lambda each: f'"{each[0]}"' if _is_near(each) else each[0], text))
    except FilterError as why:  # its column counts in the text with the added quotes
        why.column -= 2 * sum(end + 2 * number < why.column for number, end in enumerate(ends, 1))
        raise


def _is_near(token: re.Match[str]) -> bool:
    return token[0] == token["name"] and is_misspelt(token[0]) and token[0].lower() not in CONNECTIVES


def _parse(text: str) -> Filter:
    tokens = _tokens(text)
    deepest = [token for token in tokens if token.mark and token.mark in "(!"]
    if len(deepest) > DEEPEST:
        raise FilterError(deepest[DEEPEST].at, f"more than {DEEPEST} brackets and negations")
    test, rest = _either(tokens, 0, len(text) + 1)
    if rest < len(tokens):
        raise FilterError(tokens[rest].at, f"{tokens[rest].mark!r} closes no bracket")
    matches = list(_TOKEN.finditer(text))
    patterns = frozenset(each["pattern"] for each in matches if each["pattern"])
    values = ((each["name"], _value(each["value"])) for each in matches if each["name"] in WORDS and each["value"])
    return Filter(text.strip(), test, patterns, tuple(each for each in map(_searched_word, matches) if each),
                  tuple(pair for pair in values if not set(pair[1]) & set(WILDCARDS)))


# -- the grammar -----------------------------------------------------------------------------------------------------


# A parser by recursive descent: `|` binds least, then `&` or nothing, then `!` and brackets. Each function returns a
# test and the index of the next token.
def _either(tokens: list[_Token], at: int, end: int) -> tuple[Test, int]:
    first, at = _both(tokens, at, end)
    tests = [first]
    while at < len(tokens) and tokens[at].mark == "|":
        following, at = _both(tokens, at + 1, end)
        tests.append(following)
    return (first if len(tests) == 1 else lambda place: any(test(place) for test in tests)), at


def _both(tokens: list[_Token], at: int, end: int) -> tuple[Test, int]:
    first, at = _one(tokens, at, end)
    tests = [first]
    while at < len(tokens) and tokens[at].mark not in ("|", ")"):
        following, at = _one(tokens, at + (tokens[at].mark == "&"), end)
        tests.append(following)
    return (first if len(tests) == 1 else lambda place: all(test(place) for test in tests)), at


def _one(tokens: list[_Token], at: int, end: int) -> tuple[Test, int]:
    if at >= len(tokens):
        raise FilterError(end, "the expression ends where a term is expected")
    token = tokens[at]
    if token.test is not None:
        return token.test, at + 1
    if token.mark == "!":
        inner, at = _one(tokens, at + 1, end)
        return lambda place: not inner(place), at
    if token.mark == "(":
        inner, at = _either(tokens, at + 1, end)
        if at >= len(tokens):
            raise FilterError(token.at, "this bracket is not closed")
        return inner, at + 1
    raise FilterError(token.at, f"{token.mark!r} where a term is expected")


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    terms = at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise FilterError(at + 1, _unreadable(text[at:]))
        if match["mark"]:
            found.append(_Token(at + 1, match["mark"]))
        elif not match["space"]:
            terms += 1
            if terms > MOST_TERMS:
                raise FilterError(at + 1, f"more than {MOST_TERMS:,} terms")
            value = match["value"] or match["regex"] or ""
            if value.startswith('"') and not re.fullmatch(r'"(?:[^"\\]|\\.)*"', value):
                raise FilterError(match.end() - len(value) + 1, "this quote is not closed")
            found.append(_Token(at + 1, "", _term(match, at + 1)))
        at = match.end()
    return found


def _unreadable(rest: str) -> str:
    if rest.startswith('"'):
        return "this quote is not closed"
    if rest.startswith("~"):
        return (f"expected ~ with one of {' '.join(PATTERNS)} and a regular expression, such as ~t report, in quotes "
                "if it has brackets or blanks")
    return (f"{rest[0]!r} does not begin a term; expected a word such as stop:max_tokens, held, attempt>1 or ~t text, "
            'or a text in double quotes')


def _searched_word(match: re.Match[str]) -> str:
    """The word that is searched in the text; empty at a term, an operator or a space."""
    if match["bare"]:
        return _value(match["bare"])
    name = match["name"]
    if not name or (match["op"] is None and (term_of(name) or is_misspelt(name))):
        return ""
    return match[0] if match["op"] is None or (name not in names() and is_provider_word(match[0])) else ""


def _term(match: re.Match[str], column: int) -> Test:
    word = _searched_word(match)
    if word or match["bare"]:
        return _text(word, column)
    if match["pattern"]:
        return _pattern(match["pattern"], _value(match["regex"]), column, match.start("regex") + 1)
    name, op = match["name"], match["op"]
    if op is None:
        meant = term_of(name)
        return parse(meant).matches if meant not in ("", name) else _flag(name, column)
    value, value_column = _value(match["value"]), match.start("value") + 1
    if name in NUMBERS:
        return _number(name, op, value, value_column)
    if name in WORDS and op in (":", "=", "!="):
        return _word(name, op, value, value_column)
    if name in WORDS:
        raise FilterError(match.start("op") + 1, f"{name} is a word, not a number: expected {name}:VALUE")
    if name in FLAGS:
        raise FilterError(match.start("op") + 1, f"{name} takes no value")
    raise UnknownTermError(column, name, typed=match.group())


def _value(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _text(word: str, column: int) -> Test:
    if not word.strip("* "):
        raise FilterError(column, 'nothing to search for; expected a text such as "disk full"')
    wanted = re.compile(r"\S*".join(re.escape(each) for each in word.casefold().strip("*").split("*")))
    return _once(lambda place: wanted.search(place.search_text()) is not None)


def _flag(name: str, column: int) -> Test:
    row = FLAGS.get(name)
    if row is None:
        if name in WORDS or name in NUMBERS:
            raise FilterError(column, f'{name} needs a value, such as {name}:…; in "quotes" it is searched as text')
        raise UnknownTermError(column, name)
    return _once(lambda place: place.flag(name)) if row.of_response is not None else lambda place: place.flag(name)


def _word(name: str, op: str, value: str, column: int) -> Test:
    if not value:
        raise FilterError(column, f"{name} needs a value; {name}:* matches any")
    wanted = re.compile(translate(value), re.IGNORECASE)
    values = {each.casefold(): each for term, each in closed_values() if term == name}
    # Without this error a misspelt value would match nothing, as if the session had no such steps.
    if values and not any(map(wanted.match, values)):
        raise FilterError(column, value_message(name, value, values))

    def test(place: FilterPlace) -> bool:
        return any(wanted.match(each) for each in place.words(name))

    test_once = _once(test) if WORDS[name].of_response is not None else test
    return (lambda place: not test_once(place)) if op == "!=" else test_once


def _number(name: str, op: str, value: str, column: int) -> Test:
    row = NUMBERS[name]
    # At most fifteen digits before the point: a double holds every such integer exactly.
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)(%?|[a-z]+)", value.replace(",", "").replace("_", ""))
    if found is None or found[2] not in ("", "%", *row.units):
        units = f", also with {', '.join(row.units)}" if row.units else ""
        raise FilterError(column, f"{value!r} is not a number; expected {name}{op}1{units}")
    share = found[2] == "%"
    wanted, compare = float(found[1]) * row.units.get(found[2], 1), OPERATORS[op]
    if share and row.share is None:
        raise FilterError(column, f"{name} has no limit that % could be a share of")

    def test(place: FilterPlace) -> bool:
        found = place.number(name, share)
        return found is not None and compare(found, wanted)

    return test


def _pattern(name: str, regex: str, column: int, regex_column: int) -> Test:
    row = PATTERNS.get(name)
    if row is None:
        raise FilterError(column, f"unknown ~{name}; expected one of {' '.join('~' + each for each in PATTERNS)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FutureWarning: a pattern that may change its meaning
            # DOTALL: the words of an answer are often lines apart, so a pattern may span several lines.
            wanted = re.compile(regex, re.IGNORECASE | re.DOTALL)
    except re.error as why:
        raise FilterError(regex_column + (why.pos or 0), f"the regular expression is invalid: {why.msg}") from None
    return _once(lambda place: wanted.search(place.text(name)) is not None)


def _once(test: Test) -> Test:
    """A test of the current answer that is run once for each answer; False before the first answer."""
    outcomes: dict[int, bool] = {}
    of: list[object] = []

    def look_up(place: FilterPlace) -> bool:
        at, source = place.answer, place.source
        if at is None:
            return False
        if source is None:
            return test(place)
        # Answers are numbered within their session, so results are dropped when another session is tested.
        if not of or of[0] is not source:
            outcomes.clear()
            of[:] = [source]
        if at not in outcomes:
            outcomes[at] = test(place)
        return outcomes[at]

    return look_up


def explain_error(why: FilterError, values: Iterable[tuple[str, str]]) -> FilterError:
    """The error, with a suggestion if the word is one of the session's `values`, such as `("model", "gpt-5")`."""
    if not isinstance(why, UnknownTermError) or why.word.lower() in {*ALIASES, *CONNECTIVES}:
        return why
    found = term_of_value(why.word, values)
    return UnknownTermError(why.column, why.word, found, why.typed) if found else why


def search_note(found: Filter, values: Iterable[tuple[str, str]]) -> str:
    """Which words of a filter are searched in the text, each with the term for a value of that name; and which values
    of terms occur only as a part of longer values, each with the term that finds these."""
    if not found.searched and not found.values:
        return ""
    pairs = values if isinstance(values, Mapping) else dict.fromkeys(values)
    notes = [text_note(word, term_of_value(word, pairs)) for word in dict.fromkeys(found.searched)]
    return ", ".join([*notes, *filter(None, (part_note(name, value, pairs) for name, value in found.values))])


def values_of(view: View) -> Iterator[tuple[str, str]]:
    """Pairs of a term and a value that occurs in a session."""
    for name, row in WORDS.items():
        if row.of_response is not None:
            yield from ((name, value) for facts in view.responses for value in row.of_response(view, facts))
    yield from ((name, value) for turn in view.turns for name, value in (
        ("end", turn.terminal), ("conversation", turn.conversation)))
    yield from (("method", method.value) for method in Method)


# -- Looks through a session with a filter ---------------------------------------------------------------------------
# It finds steps, responses, and the places at which a breakpoint stops.


def steps(
    expression: Filter, view: View, marks: frozenset[int] = frozenset(), among: Iterable[int] | None = None
) -> list[int]:
    """The indices of the steps that match, of all or `among` some."""
    matches = expression.matches
    every = range(len(view.steps)) if among is None else among
    return [index for index in every if matches(StepContext(view, index, marks))]


def responses(expression: Filter, view: View) -> list[int]:
    """The indices of responses that match at the step that evaluates them or at a step before the next response."""
    return sorted({at for index in steps(expression, view) if (at := view.steps[index].response) is not None})


def hit_after(expression: Filter, view: View, step: int, direction: int, marks: frozenset[int]) -> int | None:
    """The next step in direction 1 or -1 at which a breakpoint stops; a condition that lasts for a response or a turn
    stops once."""
    ahead = range(step + 1, len(view.steps)) if direction > 0 else range(step - 1, -1, -1)
    return next((index for index in ahead if stops_at(expression, view, index, marks)), None)


def stops_at(expression: Filter, view: View, index: int, marks: frozenset[int]) -> bool:
    """Whether a breakpoint stops at a step: it matches, and did not at the step before of the same answer or turn."""
    here = StepContext(view, index, marks)
    if not expression.matches(here):
        return False
    before = StepContext(view, index - 1, marks)
    if index == 0 or not expression.matches(before):
        return True
    return here.answer != before.answer or here.step.turn.id != before.step.turn.id
