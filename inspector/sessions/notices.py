"""The notices of a reader about a file, as values that all reports word and sum up in the same way."""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from inspector.sessions import redact
from loop_core.values import EMPTY

_MOST_KINDS = 12
"""The largest number of kinds that a notice of several files names; a notice of one file names all."""


class Notice(NamedTuple):
    """One statement about a file. A plain text is also a notice: about the whole file, without counts."""

    words: str
    counts: Mapping[str, int] = EMPTY
    """Kind of the counted things -> their number; the kind is empty if there is only one."""
    of: int | None = None
    """The number of all such things, if the counts are a part of them."""
    at: str = ""
    """The beginning of a notice about a part of the file, mostly a place such as `line 7`; the words follow it. Such a
    notice is never summed up with those of other files. Empty for any other."""

    @property
    def kind(self) -> tuple[str, bool]:
        """The key under which notices of several files are summed up; `4 of 6` and a bare count are kept apart."""
        return self.words, self.of is None

    @property
    def text(self) -> str:
        """The notice in words, without the file's name."""
        number = f"{sum(self.counts.values()):,}"
        if self.of is not None:
            return f"{number} of {self.of:,} {self.words}"
        counted = number if set(self.counts) == {""} else ", ".join(
            f"{kind} ({count:,})" for kind, count in sorted(self.counts.items()))
        return f"{self.at}{self.words}{counted and ': '}{counted}"


def notice_of(notice: Notice | str) -> Notice:
    """The notice as a value."""
    return notice if isinstance(notice, Notice) else Notice(notice)


def mask_notice(notice: Notice | str) -> Notice:
    """The notice with credentials masked; if there are any, it becomes a plain text without counts."""
    whole = notice_of(notice)
    text = redact.text(whole.text)
    return whole if text == whole.text else Notice(text)


def is_own(notice: Notice, shared: Container[tuple[str, bool]]) -> bool:
    """Whether a report lists the notice with its file, instead of once for all files (`shared_notices`)."""
    return bool(notice.at) or notice.kind not in shared


def share(some: int, every: int, words: str) -> list[Notice]:
    """The notice about `some` of all things; empty if it concerns none."""
    return [Notice(words, {"": some}, every)] if some else []


class SharedNotice(NamedTuple):
    """A notice that several files have, with the sum of their counts."""

    files: int
    notice: Notice

    @property
    def text(self) -> str:
        """The notice in words, with the most frequent kinds."""
        counts = Counter(self.notice.counts)
        most = dict(counts.most_common(_MOST_KINDS))
        rest = f" and {len(counts) - len(most):,} more kinds" if len(counts) > len(most) else ""
        return f"notice of {self.files:,} files: {self.notice._replace(counts=most).text}{rest}"


def shared_notices(files: Iterable[Iterable[Notice]]) -> dict[tuple[str, bool], SharedNotice]:
    """The notices about whole files that several files have, by their kind."""
    found: dict[tuple[str, bool], dict[int, list[Notice]]] = {}
    for number, statements in enumerate(files):
        for notice in statements:
            if not notice.at:
                found.setdefault(notice.kind, {}).setdefault(number, []).append(notice)
    return {kind: SharedNotice(len(several), _sum([*chain(*several.values())]))
            for kind, several in found.items() if len(several) > 1}


def _sum(several: list[Notice]) -> Notice:
    counts = sum((Counter(each.counts) for each in several), Counter[str]())
    first = several[0]
    return first._replace(counts=counts, of=None if first.of is None else sum(each.of or 0 for each in several))
