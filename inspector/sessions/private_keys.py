"""Finds the lines of a private key that has other text around each line: line numbers, marks of a diff, quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.sessions.credential_values import random_looking

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
