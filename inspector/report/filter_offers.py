"""The suggestions of a filter for a word or a value that it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache

from inspector.report.filter_terms import FLAGS, NUMBERS, WORDS

ALIASES: Mapping[str, str] = {"absent": "!raw:*", "run": "ran"}
"""Words that rows print beside those of a term, and the terms that find them."""
CONNECTIVES: Mapping[str, str] = {"and": "&", "or": "|", "not": "!"}
"""Words for the marks between terms."""


def closed_values() -> Iterator[tuple[str, str]]:
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


NEAR = 0.75
"""How like a term (`difflib`) a word must be to be taken for a slip: helt is held, but a readme is not ready."""


def term_of(name: str) -> str:
    """The term for a word that rows print, such as `verdict:TRUNCATED` for `truncated`; empty if there is no such term.

    A single word of a longer verdict, such as `answer`, has no term: it is searched in the text.
    """
    from inspector.report.verdict import ROWS

    word = name.lower()
    term = _offers().get(word, "")
    return "" if term.startswith("verdict:") and all(word != row.word.lower() for row in ROWS) else term


def slip(name: str) -> bool:
    """Whether a word that is not a term is taken for a misspelt one. The beginning of a term or value is not: it may
    still be being typed, or be the word to search."""
    word = name.lower()
    begins = any(each.startswith(word) for each in _offers())
    return word in CONNECTIVES or (not begins and bool(nearest_term(name)))


@cache
def _offers() -> Mapping[str, str]:
    """A word in lower case -> the term that finds it."""
    terms = {each.lower(): each for each in (*FLAGS, *WORDS, *NUMBERS)}
    values = {value.lower(): term_text(term, value) for term, value in closed_values()}
    return {**values, **terms, **ALIASES}


def nearest_term(name: str, least: float = NEAR) -> str:
    """The term that finds a word, else the nearest; empty if none is near."""
    offers = _offers()
    found = get_close_matches(name.lower(), offers, 1, least)
    return {**offers, **CONNECTIVES}.get(name.lower()) or (offers[found[0]] if found else "")


def meant_term(name: str) -> str:
    """The message about a term that does not exist, with the nearest term."""
    near = nearest_term(name, 0.6)
    return f"did you mean {near}?" if near else f"expected one of {', '.join((*FLAGS, *WORDS, *NUMBERS))};"


def meant_value(name: str, value: str, values: Mapping[str, str]) -> str:
    """The message about a value that a term never has: the nearest of its values, or all of them if they are few."""
    near = get_close_matches(value, values, 1, 0.5) or [each for each in values if value in each]
    if near:
        return f"did you mean {term_text(name, values[near[0]])}?"
    return f"expected one of {', '.join(values.values())}" if len(values) <= FEW else f"{name}:* finds any"


FEW = 14
"""So many values of a term are listed in a message; more would not fit on a line."""


def term_text(name: str, value: str) -> str:
    """A term with a value, in quotes where it needs them."""
    bare = re.fullmatch(r'[^\s()&|"\\]+', value) is not None
    return f"{name}:{value if bare else in_quotes(value)}"


def in_quotes(text: str) -> str:
    """A text as an expression quotes it."""
    return f'"{re.sub(QUOTED, PLAIN, text)}"'


QUOTED, PLAIN = r'(["\\])', r"\\\1"
