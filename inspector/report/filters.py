"""Reads a filter: `stop:max_tokens held attempt>1 & (tool:write_* | ~t report) !marked`.

Terms side by side are both wanted; `&` says so aloud, `|` wants either, `!` wants not, brackets group. An error names
the column, from 1, that it stands at.

Further down: looks through a session with a filter.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import translate

from inspector.report.facts import View
from inspector.report.filter_terms import FLAGS, NUMBERS, PATTERNS, WORDS, FilterPlace, StepContext
from loop_core.errors import CallerError


class FilterError(CallerError):
    """The expression is invalid; `column` counts from 1."""

    def __init__(self, column: int, message: str) -> None:
        self.column = column
        super().__init__(f"column {column}: {message}")


class UnknownTermError(FilterError):
    """A word of the expression is not a term; `word` is what was typed."""

    def __init__(self, column: int, word: str, offer: str = "") -> None:
        self.word = word
        super().__init__(column, f"unknown term {word!r}; did you mean {offer}?" if offer else _unknown(word))


Test = Callable[[FilterPlace], bool]


@dataclass(frozen=True, slots=True)
class Filter:
    """A parsed expression."""

    text: str
    matches: Test
    """Whether a place is wanted. Keeps what it learned of each answer of one session."""
    patterns: frozenset[str] = frozenset()
    """The texts that it looks into, by the letters of `PATTERNS`."""


OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, ">": operator.gt, "<": operator.lt, "=": operator.eq,
    ":": operator.eq,
}
DEEPEST = 100
"""Brackets and negations in one expression; each is a call deeper."""
_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<mark>[()&|!])
  | ~(?P<pattern>\w+)\s+(?P<regex>"(?:[^"\\]|\\.)*"|[^\s()]+)
  | (?P<name>[A-Za-z_][\w.]*)(?:(?P<op>>=|<=|!=|[:=<>])(?P<value>"(?:[^"\\]|\\.)*"|[^\s()&|]*))?
""", re.VERBOSE)


@dataclass(frozen=True, slots=True)
class _Token:
    at: int
    mark: str
    """A bracket or a connective; empty for a term."""
    test: Test | None = None


def parse(text: str) -> Filter:
    """Parses an expression.

    Raises:
        FilterError: it cannot be read; the column says where.
    """
    if not text.strip():
        raise FilterError(1, "empty; expected a term such as stop:max_tokens or held")
    tokens = _tokens(text)
    deepest = [token for token in tokens if token.mark and token.mark in "(!"]
    if len(deepest) > DEEPEST:
        raise FilterError(deepest[DEEPEST].at, f"more than {DEEPEST} brackets and negations")
    test, rest = _either(tokens, 0, len(text) + 1)
    if rest < len(tokens):
        raise FilterError(tokens[rest].at, f"{tokens[rest].mark!r} closes no bracket")
    patterns = frozenset(seen["pattern"] for seen in _TOKEN.finditer(text) if seen["pattern"])
    return Filter(text.strip(), test, patterns)


# -- the grammar -----------------------------------------------------------------------------------------------------


def _either(tokens: list[_Token], at: int, end: int) -> tuple[Test, int]:
    first, at = _both(tokens, at, end)
    tests = [first]
    while at < len(tokens) and tokens[at].mark == "|":
        following, at = _both(tokens, at + 1, end)
        tests.append(following)
    return (first if len(tests) == 1 else lambda look: any(test(look) for test in tests)), at


def _both(tokens: list[_Token], at: int, end: int) -> tuple[Test, int]:
    first, at = _one(tokens, at, end)
    tests = [first]
    while at < len(tokens) and tokens[at].mark not in ("|", ")"):
        following, at = _one(tokens, at + (tokens[at].mark == "&"), end)
        tests.append(following)
    return (first if len(tests) == 1 else lambda look: all(test(look) for test in tests)), at


def _one(tokens: list[_Token], at: int, end: int) -> tuple[Test, int]:
    if at >= len(tokens):
        raise FilterError(end, "the expression ends where a term is expected")
    token = tokens[at]
    if token.test is not None:
        return token.test, at + 1
    if token.mark == "!":
        inner, at = _one(tokens, at + 1, end)
        return lambda look: not inner(look), at
    if token.mark == "(":
        inner, at = _either(tokens, at + 1, end)
        if at >= len(tokens):
            raise FilterError(token.at, "this bracket is not closed")
        return inner, at + 1
    raise FilterError(token.at, f"{token.mark!r} where a term is expected")


# -- terms -----------------------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        seen = _TOKEN.match(text, at)
        if seen is None:
            raise FilterError(at + 1, _unreadable(text[at:]))
        if seen["mark"]:
            found.append(_Token(at + 1, seen["mark"]))
        elif not seen["space"]:
            found.append(_Token(at + 1, "", _term(seen, at + 1)))
        at = seen.end()
    return found


def _unreadable(rest: str) -> str:
    if rest.startswith("~"):
        return f"expected ~ with one of {' '.join(PATTERNS)} and a regular expression, such as ~t report"
    return f"{rest[0]!r} does not begin a term; expected a word such as stop:max_tokens, held, attempt>1 or ~t text"


def _term(match: re.Match[str], column: int) -> Test:
    if match["pattern"]:
        return _pattern(match["pattern"], _value(match["regex"]), column, match.start("regex") + 1)
    name, op = match["name"], match["op"]
    if op is None:
        return _flag(name, column)
    value, value_column = _value(match["value"]), match.start("value") + 1
    if name in NUMBERS:
        return _number(name, op, value, value_column)
    if name in WORDS and op in (":", "=", "!="):
        return _word(name, op, value, value_column)
    if name in WORDS:
        raise FilterError(match.start("op") + 1, f"{name} is a word, not a number: expected {name}:VALUE")
    if name in FLAGS:
        raise FilterError(match.start("op") + 1, f"{name} takes no value")
    raise UnknownTermError(column, name)


def _value(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


ALIASES: Mapping[str, str] = {"absent": "!raw:*", "run": "ran"}
"""Words that rows print beside those of a term, and the terms that find them."""


def _closed_values() -> Iterator[tuple[str, str]]:
    """The terms whose values are known before anything is read, each with its values as rows print them."""
    from inspector.report.verdict import ROWS
    from loop_core.formats import FORMATS
    from loop_core.judge.endings import Ending
    from loop_core.turn.state import State
    from loop_core.turn.trace import Fidelity
    from loop_core.values import Stop

    yield from (("verdict", word) for row in ROWS for word in (row.word, *row.word.replace(",", "").split()))
    closed = (("mapped", Stop), ("stop", Stop), ("ending", Ending), ("state", State), ("fidelity", Fidelity))
    for name, values in closed:
        yield from ((name, each.value) for each in values)
    yield from (("api", each) for each in FORMATS)


def _unknown(name: str) -> str:
    """What is said of a term that does not exist: the term that finds the word, else the nearest."""
    terms = {each.lower(): each for each in (*FLAGS, *WORDS, *NUMBERS)}
    values = {value.lower(): _spelled(term, value) for term, value in _closed_values()}
    offers = {**values, **terms, **ALIASES}
    found = offers.get(name.lower())
    near = [found] if found is not None else [offers[each] for each in get_close_matches(name.lower(), offers, 1)]
    meant = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(terms.values())}"
    return f"unknown term {name!r}; {meant}"


def _flag(name: str, column: int) -> Test:
    row = FLAGS.get(name)
    if row is None:
        known = name in WORDS or name in NUMBERS
        raise FilterError(column, f"{name} needs a value, such as {name}:…") if known else (
            UnknownTermError(column, name))
    return _once(lambda look: look.flag(name)) if row.of_response is not None else lambda look: look.flag(name)


def _word(name: str, op: str, value: str, column: int) -> Test:
    if not value:
        raise FilterError(column, f"{name} needs a value; {name}:* matches any")
    wanted = re.compile(translate(value), re.IGNORECASE)
    values = {each.casefold(): each for term, each in _closed_values() if term == name}
    if values and not any(map(wanted.match, values)):
        raise FilterError(column, f"{name} is never {value!r}; {_offer(name, value.casefold(), values)}")

    def test(look: FilterPlace) -> bool:
        return any(wanted.match(each) for each in look.words(name))

    test_once = _once(test) if WORDS[name].of_response is not None else test
    return (lambda look: not test_once(look)) if op == "!=" else test_once


def _offer(name: str, value: str, values: Mapping[str, str]) -> str:
    """What is said of a value that a term never has: the nearest of its values; else all, where they are few."""
    near = get_close_matches(value, values, 1, 0.5) or [each for each in values if value in each]
    if near:
        return f"did you mean {_spelled(name, values[near[0]])}?"
    return f"expected one of {', '.join(values.values())}" if len(values) <= FEW else f"{name}:* finds any"


FEW = 14
"""So many values of a term are listed in a message; more would not fit on a line."""


def _number(name: str, op: str, value: str, column: int) -> Test:
    plain = value.replace(",", "").replace("_", "")
    share = plain.endswith("%")
    if re.fullmatch(r"\d{1,15}(\.\d{1,6})?%?", plain) is None:
        raise FilterError(column, f"{value!r} is not a number; expected {name}{op}1")
    row, wanted, compare = NUMBERS[name], float(plain.rstrip("%")), OPERATORS[op]
    if share and row.share is None:
        raise FilterError(column, f"{name} has no limit that % could be a share of")

    def test(look: FilterPlace) -> bool:
        found = look.number(name, share)
        return found is not None and compare(found, wanted)

    return test


def _pattern(name: str, regex: str, column: int, regex_column: int) -> Test:
    row = PATTERNS.get(name)
    if row is None:
        raise FilterError(column, f"unknown ~{name}; expected one of {' '.join('~' + each for each in PATTERNS)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of what may change its meaning one day, on standard error
            wanted = re.compile(regex, re.IGNORECASE | re.DOTALL)
    except re.error as why:
        raise FilterError(regex_column + (why.pos or 0), f"the regular expression is invalid: {why.msg}") from None
    return _once(lambda look: wanted.search(look.text(name)) is not None)


def _once(test: Test) -> Test:
    """A test of the answer at hand, made once for each answer; False before the first."""
    known: dict[int, bool] = {}
    of: list[object] = []

    def look_up(look: FilterPlace) -> bool:
        at, source = look.answer, look.source
        if at is None:
            return False
        if source is None:
            return test(look)
        if not of or of[0] is not source:
            known.clear()
            of[:] = [source]
        if at not in known:
            known[at] = test(look)
        return known[at]

    return look_up


def explain_error(why: FilterError, values: Iterable[tuple[str, str]]) -> FilterError:
    """The same error, with a suggestion if the word is one that the screens show.

    `values` are the terms and their values in what is filtered: `("model", "gpt-5")`.
    """
    if not isinstance(why, UnknownTermError) or why.word in ALIASES:
        return why
    wanted, begun = why.word.casefold(), ""
    for name, value in values:
        if value.casefold() == wanted:
            return UnknownTermError(why.column, why.word, _spelled(name, value))
        if not begun and value.casefold().startswith(wanted):
            begun = _spelled(name, value)
    return UnknownTermError(why.column, why.word, begun) if begun else why


def _spelled(name: str, value: str) -> str:
    bare = re.fullmatch(r'[^\s()&|"\\]+', value) is not None
    return f"{name}:{value}" if bare else f'{name}:"{re.sub(QUOTED, PLAIN, value)}"'


QUOTED, PLAIN = r'(["\\])', r"\\\1"


def values_of(view: View) -> Iterator[tuple[str, str]]:
    """The terms and the values that occur in a session."""
    for name, row in WORDS.items():
        if row.of_response is not None:
            yield from ((name, value) for facts in view.responses for value in row.of_response(view, facts))
    yield from (("end", turn.terminal) for turn in view.turns)


# -- Looks through a session with a filter ---------------------------------------------------------------------------
# Steps, responses, and where a breakpoint stops.


def steps(expression: Filter, view: View, marks: frozenset[int] = frozenset()) -> list[int]:
    """The indices of the steps that match."""
    matches = expression.matches
    return [index for index in range(len(view.steps)) if matches(StepContext(view, index, marks))]


def responses(expression: Filter, view: View) -> list[int]:
    """The responses that match at the step that evaluates them or at a step before the next response."""
    return sorted({at for index in steps(expression, view) if (at := view.steps[index].response) is not None})


def hit_after(
    expression: Filter, view: View, step: int, direction: int = 1, marks: frozenset[int] = frozenset()
) -> int | None:
    """The next step at which a breakpoint stops, in direction 1 or -1; None if there is none.

    It stops where the filter begins to match, and again at each further response or turn that matches: a condition that
    stays true does not stop at every step of one response.
    """
    ahead = range(step + 1, len(view.steps)) if direction > 0 else range(step - 1, -1, -1)
    return next((index for index in ahead if _begins(expression, view, index, marks)), None)


def _begins(expression: Filter, view: View, index: int, marks: frozenset[int]) -> bool:
    here = StepContext(view, index, marks)
    if not expression.matches(here):
        return False
    before = StepContext(view, index - 1, marks)
    if index == 0 or not expression.matches(before):
        return True
    return here.answer != before.answer or here.step.turn.id != before.step.turn.id
