"""Finds terms for words in a filter that are not names of terms: words that rows print, and misspelt ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache

from inspector.report.filter_terms import FLAGS, NUMBERS, WORDS, verdict_words
from inspector.report.verdict import ROWS, UNREAD, identifier
from inspector.sessions.reasons import INFERRED
from loop_core.formats import FORMATS
from loop_core.judge.endings import Ending
from loop_core.turn.state import State
from loop_core.turn.trace import Fidelity
from loop_core.values import Stop
from loop_core.wire import wire

ALIASES: Mapping[str, str] = {"absent": "!raw:*", "run": "ran", "inferred": f"rule:{INFERRED}*"}
"""Word that rows print, but that is not a value of a term -> the term that finds it."""
COLUMNS: Mapping[str, str] = {"reason": "stop", "duration_ms": "took", "tokens": "out", "started": "age"}
"""Name of a column of the table of turns in JSON and CSV that is not a term -> the term for its values."""
CONNECTIVES: Mapping[str, str] = {"and": "&", "or": "|", "not": "!"}


def names() -> tuple[str, ...]:
    """The names of all terms but patterns."""
    return *FLAGS, *WORDS, *NUMBERS


def closed_values() -> Iterator[tuple[str, str]]:
    """Pairs of a term whose values are known before anything is read, and one of its values as rows print it."""
    yield from (("verdict", word) for row in ROWS for word in verdict_words(row.word))
    yield from (("verdict", word) for unread in UNREAD for word in (unread, identifier(unread)))
    closed = (("mapped", Stop), ("stop", Stop), ("ending", Ending), ("state", State), ("fidelity", Fidelity))
    for name, values in closed:
        yield from ((name, each.value) for each in values)
    yield from (("api", each) for each in FORMATS)


NEAR = 0.75
"""The similarity (`difflib`) from which a word counts as a misspelt term: `helt` is `held`; `readme` is not `ready`."""
SHORTEST = 3
"""The least length of a word that counts as misspelt, and of its term, which must be longer: the agent's name `pi` is
near to `api`, and `page` is near to `age`."""


def term_of(name: str) -> str:
    """The term for a word that rows print, such as `verdict:TRUNCATED` for `truncated`; empty if there is none."""
    word = name.lower()
    term = _terms_by_word().get(word, "")
    return term if word in _whole_verdicts() or not term.startswith("verdict:") else ""


@lru_cache(maxsize=4_096)
def is_misspelt(name: str) -> bool:
    """Whether a word counts as a misspelt term; the beginning of a term does not, since it may still be typed."""
    word = name.lower()
    if word in CONNECTIVES:
        return True
    begins = any(each.startswith(word) for each in _terms_by_word())
    return not begins and len(nearest_term(name)) > SHORTEST and not is_provider_word(name)


def is_provider_word(word: str) -> bool:
    """Whether this is a provider's stop word; rows print it, so it is searched in the text."""
    return word.lower() in _provider_words()


@cache
def _provider_words() -> frozenset[str]:
    return frozenset(word.lower() for api in FORMATS for word in wire(api).stop_reasons)


@cache
def _terms_by_word() -> Mapping[str, str]:
    """Word in lower case -> the term that finds it; a word that is both a verdict and another value, such as
    `interrupted`, finds both."""
    values: dict[str, str] = {}
    for name, value in closed_values():
        word, term = value.lower(), term_text(name, value)
        verdict = term_text("verdict", word)
        values[word] = f"{verdict} | {term}" if name != "verdict" and word in _whole_verdicts() else term
    return {**values, **{each.lower(): each for each in names()}, **ALIASES}


@cache
def _whole_verdicts() -> frozenset[str]:
    rows = (*(row.word for row in ROWS), *UNREAD)
    return frozenset(word for each in rows for word in (each.lower(), identifier(each)))


def nearest_term(name: str, least: float = NEAR, among: Collection[str] = ()) -> str:
    """The term that finds a word, else the nearest, by default of all words; empty if none is near."""
    offers = _terms_by_word()
    found = get_close_matches(name.lower(), among or offers, 1, least) if len(name) >= SHORTEST else []
    return {**offers, **CONNECTIVES}.get(name.lower()) or (offers[found[0]] if found else "")


def text_note(word: str, term: str) -> str:
    """The note about a word that is searched as text: the `term` for the value of that name, or a similar term."""
    near = COLUMNS.get(word) or nearest_term(word) if is_misspelt(word) else ""
    hint = f" ({term} for that value alone)" if term else f" (did you mean {near}?)" if near else ""
    return f"{in_quotes(word)} as text{hint}"


def part_note(name: str, value: str, pairs: Iterable[tuple[str, str]]) -> str:
    """The note about a value that occurs only as a part of longer values; empty for any other value."""
    wanted = value.casefold()
    longer = [each for term, each in pairs if term == name and wanted in each.casefold()]
    if not longer or wanted in map(str.casefold, longer):
        return ""
    wider = f"{value}*" if longer[0].casefold().startswith(wanted) else f"*{value}*"
    return f"no {name} is {in_quotes(value)}: {term_text(name, wider)} finds {in_quotes(longer[0])}"


def term_message(name: str, typed: str, offer: str) -> str:
    """The message about an unknown term. What to type instead comes first, because narrow screens cut the end."""
    near = COLUMNS.get(name, offer) or nearest_term(name, 0.6, names() if typed != name else ())
    if near:
        return f'did you mean {near}? unknown term {name!r}; in "quotes" it is searched as text'
    offer = ", ".join(names())
    return f"{in_quotes(typed)} in quotes is searched as text; unknown term {name!r}, expected one of {offer}"


def value_message(name: str, value: str, values: Mapping[str, str]) -> str:
    """The message about a value that a term never has; first what to type instead: the nearest, or all if few."""
    folded = value.casefold()
    begun = sorted((each for each in values if each.startswith(folded)), key=len)
    near = begun or get_close_matches(folded, values, 1, 0.5) or [each for each in values if folded in each]
    few = f"expected one of {', '.join(values.values())}" if len(values) <= FEW else f"{name}:* finds any"
    offer = term_text(name, values[near[0]]) if near else term_text("raw", value) if is_provider_word(value) else ""
    advice = f"did you mean {offer}?" if offer else f"{few};"
    return f"{advice} {name} is never {value!r}"


FEW = 14
"""The largest number of values of a term that a message lists."""


def term_of_value(word: str, values: Iterable[tuple[str, str]]) -> str:
    """The term for the value that equals a word or, failing that, begins with it; empty if there is none."""
    wanted, begun = word.casefold(), ""
    for name, value in values:
        if value.casefold() == wanted:
            return term_text(name, value)
        if not begun and value.casefold().startswith(wanted):
            begun = term_text(name, value)
    return begun


def term_text(name: str, value: str) -> str:
    """A term with a value, in quotes where it needs them."""
    bare = re.fullmatch(r'[^\s()&|"\\]+', value) is not None
    return f"{name}:{value if bare else in_quotes(value)}"


def in_quotes(text: str) -> str:
    """A text as an expression quotes it."""
    escaped = re.sub(r'(["\\])', r"\\\1", text)
    return f'"{escaped}"'
