"""Pieces of text and the texts that they make: which pieces, in which order, say exactly what a response says.

A text is given to the first group of pieces that says it; where the pieces of one group do not, to pieces of any. What
is left over and says the same again is a repetition. Knows no format; a text that no pieces make stays without any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from loop_core.frozen import frozen, record

_TRIES = 64
"""How often a text that no pieces make is looked for from another beginning: a body may be made to have many."""


@record
class Piece:
    """A value that may be a piece of a text."""

    text: str
    string: bool
    start: int
    end: int
    pointer: str
    group: tuple[Any, ...]
    used: bool = False


@frozen
class Wanted:
    """A text of the response: the fact that it is, and before which byte none of it can stand."""

    fact: str
    text: str
    after: int = 0
    joint: str = ""
    """What may stand between two pieces without being in the bytes."""
    cut: bool = False
    """It may be the beginning of a JSON value whose end was taken off."""


class Supply:
    """The pieces of one kind of fact, in the order of the bytes."""

    __slots__ = ("_all", "_groups", "_left", "_tries")

    def __init__(self) -> None:
        self._all: list[Piece] = []
        self._groups: dict[tuple[Any, ...], _Group] = {}
        self._left: dict[tuple[Any, ...], _Group] = {}  # groups that are not used up
        self._tries = _TRIES

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._all)

    def add(self, piece: Piece) -> None:
        """Takes one more; what is no string goes on with nothing."""
        self._all.append(piece)
        key = piece.group if piece.string else (*piece.group, piece.start)
        if key not in self._groups:
            self._groups[key] = self._left[key] = _Group()
        self._groups[key].pieces.append(piece)

    def take(self, wanted: Wanted) -> list[Piece]:
        """The pieces that make the text; they are used then. None at all where no pieces make it."""
        found: list[Piece] = []
        empty = []
        for key, group in self._left.items():
            if group.used_up:
                empty.append(key)
            elif found := group.run(wanted):
                break
        for key in empty:
            del self._left[key]
        if not found and self._tries:
            self._tries -= 1
            found = _picked(self._all, wanted, gaps=True) or (_beginning(self._all, wanted) if wanted.cut else [])
        for piece in found:
            piece.used = True
        return found

    def repetitions(self, made: Iterable[tuple[Wanted, Sequence[Piece]]]) -> list[tuple[str, Piece]]:
        """Unused pieces that, alone or with the rest of their group, say again what was made: fact and piece."""
        by_group: dict[tuple[tuple[Any, ...], str], str] = {}
        by_text: dict[str, str] = {}
        owners: set[Any] = set()
        for wanted, pieces in made:
            owners.update(piece.group[1:2] for piece in pieces)
            if wanted.text and pieces:
                by_text.setdefault(wanted.text, wanted.fact)
                by_group[pieces[0].group, wanted.text] = wanted.fact
        found: list[tuple[str, Piece]] = []
        for key, group in self._groups.items():
            rest = [piece for piece in group.pieces if not piece.used]
            if not rest or (rest[0].group[1:2] and rest[0].group[1:2] not in owners):
                continue  # another choice may say the same
            whole = by_text.get("".join(piece.text for piece in rest))
            for piece in rest:
                fact = whole or by_group.get((key, piece.text)) or by_text.get(piece.text)
                if fact is not None and piece.text:
                    found.append((fact, piece))
        return found


class _Group:
    """Pieces that follow one another."""

    __slots__ = ("head", "pieces")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.head = 0  # all before it are used

    @property
    def used_up(self) -> bool:
        """Whether no piece is left."""
        while self.head < len(self.pieces) and self.pieces[self.head].used:
            self.head += 1
        return self.head == len(self.pieces)

    def run(self, wanted: Wanted) -> list[Piece]:
        """Unused pieces in a row that make the text."""
        pieces = self.pieces
        tries = _TRIES
        for first in range(self.head, len(pieces)):
            piece = pieces[first]
            fits = wanted.text.startswith(piece.text) if piece.text else not wanted.text
            if piece.used or piece.start < wanted.after or not fits:
                continue
            found = _picked(islice(pieces, first, None), wanted, gaps=False)
            tries -= 1
            if found or not tries:
                return found
        return []


def _picked(pieces: Iterable[Piece], wanted: Wanted, *, gaps: bool) -> list[Piece]:
    """Unused pieces that make the text, each taken where it fits; without `gaps` none may be passed over."""
    text, joint = wanted.text, wanted.joint
    found: list[Piece] = []
    at = 0
    for piece in pieces:
        if piece.used or piece.start < wanted.after:
            continue
        if text.startswith(piece.text, at):
            step = 0
        elif joint and found and text.startswith(joint + piece.text, at):
            step = len(joint)
        elif gaps:
            continue
        else:
            return []
        if piece.text or not text:
            found.append(piece)
            at += step + len(piece.text)
            if at == len(text):
                return found
    return []


def _beginning(pieces: Iterable[Piece], wanted: Wanted) -> list[Piece]:
    """The JSON value that the text is the beginning of, so far as it goes."""
    for piece in pieces:
        usable = not (piece.used or piece.string) and piece.start >= wanted.after
        if usable and wanted.text and piece.text.startswith(wanted.text):
            piece.end = piece.start + len(wanted.text.encode("utf-8", "surrogatepass"))
            return [piece]
    return []
