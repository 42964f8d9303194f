"""Lines of styled text as plain values, and sheets of lines, for every screen and text report.

A `Line` is a tuple of spans; a span is a text and its role. A role says what a text is; a screen maps it to a style, a
plain report ignores it. Text of a transcript must be made inert before it becomes a span; `safe` does both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple
from unicodedata import combining, east_asian_width

# -- Hostile text made inert -----------------------------------------------------------------------------------------
# Text of a transcript must not control the terminal, nor look like other text (CVE-2021-42574), so control characters
# and invisible format characters are shown as marks. Line breaks and tabs stay. Markup needs no escape, because no
# renderer of this project parses it.

_FORMAT = (
    "\x80-\x9f"  # C1 (ECMA-48): an 8-bit terminal reads 0x9B as ESC [
    "\u00ad\u061c\u180e"
    "\u200b-\u200f"  # zero width, and left-to-right marks
    "\u2028-\u202e"  # separators, and bidirectional embeddings and overrides
    "\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"  # tags
    "\ud800-\udfff"  # lone surrogates cannot be written out
)
_ANY = re.compile(f"[\x00-\x08\x0b-\x1f\x7f{_FORMAT}]")  # ranges: a class of single characters compiles slowly
# Unicode has a picture for each ASCII control character, in the same order from U+2400 on.
_DELETE, _PICTURES = 0x7F, 0x2400


def _mark(match: re.Match[str]) -> str:
    if (code := ord(match[0])) < ord(" "):
        return chr(_PICTURES + code)
    return "\u2421" if code == _DELETE else f"<{code:04X}>"


def inert(text: str) -> str:
    """`text` with control and format characters replaced by visible marks; line breaks and tabs stay."""
    return text if text.isascii() and text.isprintable() else _ANY.sub(_mark, text.replace("\r\n", "\n"))


def count_of(count: int, noun: str, nouns: str = "") -> str:
    """A number of things in words, such as `1 turn` and `2,000 turns`; `nouns` is a plural of another form."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def in_words(value: object) -> str:
    """A plain value as a reader sees it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def one_line(text: str, width: int | None = None) -> str:
    """`text` inert and on one line, line breaks replaced by marks; cut to `width` characters with an ellipsis."""
    line = inert(text).replace("\n", "\u23ce").replace("\t", " ")
    if width is not None and len(line) > width:
        return line[: max(0, width - 1)] + "…"
    return line


def end_of_line(text: str, width: int) -> str:
    """`text` inert and on one line; a longer text is cut to its last `width` characters, with an ellipsis before."""
    line = one_line(text)
    return line if len(line) <= width else f"…{line[1 - width :]}"


# It includes GitHub's own syntax: `@` for a mention, `^` a footnote, `$` a formula, `://` and `www.` for links.
_SPECIAL = re.compile(
    r"([\\`*{}\[\]<>|~&$^@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.|^[#+=!-]|(?<=^\d)[.)]|(?<=!)\()")
"""Matches the characters of Markdown's syntax. An underscore within a word is not one of them."""


def escape_markdown(text: str) -> str:
    """`text` on one line, with Markdown's special characters escaped."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def last_name(path: str) -> str:
    """The name of a file or folder, without the folders that it is in."""
    return path.rstrip("/").rpartition("/")[2] or path


QUOTE_CHARS = 40
"""The number of characters that a message quotes of a typed or pasted text."""


def in_quotes(text: str) -> str:
    """A text in quotes, cut so that the rest of the message stays visible."""
    return repr(one_line(text, QUOTE_CHARS))


class Tone(StrEnum):
    """The role of a piece of text, which decides its style."""

    PLAIN = "plain"
    DIM = "dim"
    STRONG = "strong"
    TITLE = "title"
    KEY = "key"
    PRESS = "press"
    """A key that can be pressed or clicked."""
    RULE = "rule"
    """A line or frame that is drawn, and the gutter beside text."""
    OK = "ok"
    WARN = "warn"
    ERROR = "error"
    RAW = "raw"
    """The provider's own stop word."""
    NORMALIZED = "normalized"
    SEAM = "seam"
    HELD = "held"
    HERE = "here"
    PAST = "past"
    AHEAD = "ahead"
    ADDED = "added"
    REMOVED = "removed"
    MARK = "mark"
    """Text that stands out, such as the bytes from which a stop reason was read."""
    READ = "read"
    """Bytes from which the selected fact was read."""
    PICKED = "picked"
    """The selected range among the bytes of the selected fact."""
    MATCH = "match"
    STRING = "string"
    NUMBER = "number"


class Span(NamedTuple):
    """A piece of text and its role."""

    text: str
    role: Tone = Tone.PLAIN


Line = tuple[Span, ...]
EMPTY: Line = ()


def safe(text: str, role: Tone = Tone.PLAIN, width: int | None = None) -> Span:
    """A span of transcript text: inert, on one line, cut to `width` characters."""
    return Span(one_line(text, width), role)


def quote(text: str, role: Tone = Tone.RAW, width: int | None = None) -> Span:
    """A span of transcript text in quotation marks."""
    return Span(f'"{one_line(text, width)}"', role)


def text_of(line: Line) -> str:
    """The characters of a line."""
    return "".join(span.text for span in line)


LONGEST = 4_000
"""The largest number of characters of a line; a longer paragraph is broken at a space, so that wrapping stays fast."""


def paragraphs(text: str, role: Tone = Tone.PLAIN) -> list[Line]:
    """Transcript text as inert lines, tabs widened."""
    found: list[Line] = []
    for line in inert(text).split("\n"):
        line = line.expandtabs(4)
        while len(line) > LONGEST:
            cut = line.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
            found.append((Span(line[:cut], role),))
            line = line[cut:]
        found.append((Span(line, role),))
    return found


LABEL = 15
"""The width of a field's name in columns."""


def field(name: str, *spans: Span) -> Line:
    """A line with a name and its value."""
    return (Span(f"{name:<{LABEL}}", Tone.KEY), *spans)


def more(*spans: Span) -> Line:
    """A further line of the same field."""
    return (Span(" " * LABEL), *spans)


def join_groups(parts: Iterable[Iterable[Span]], separator: str = " · ") -> Line:
    """Groups of spans with a separator in between."""
    found: list[Span] = []
    for group in parts:
        if found:
            found.append(Span(separator, Tone.DIM))
        found.extend(group)
    return tuple(found)


def words(*texts: str) -> Line:
    """Texts with a separator in between."""
    return join_groups([(Span(text),) for text in texts])


GUTTER = 2
"""The width of a mark before a text; further rows of the text are indented by it."""

Measure = Callable[[str], int]
"""A function that gives the number of cells of a text. A screen passes its own, so that layout and drawing agree."""


def cells(text: str) -> int:
    """The number of terminal cells of a text."""
    if text.isascii():
        return len(text)
    # Wide and fullwidth characters take two cells (Unicode Standard Annex 11), combining ones none.
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def width_of(line: Line, measure: Measure = cells) -> int:
    """The number of cells of a line."""
    return sum(measure(span.text) for span in line)


def fit(text: str, width: int, measure: Measure = cells) -> int:
    """How many characters of `text` fit into `width` cells; at least one."""
    if text.isascii() or width <= 0:
        return max(1, width)
    used = 0
    most = len(text)
    for index, char in enumerate(text):
        used += measure(char)
        if used > width:
            most = index
            break
    while most > 1 and measure(text[:most]) > width:  # U+FE0F makes the sign before it wider
        most -= 1
    return max(1, most)


def clip(line: Line, width: int, measure: Measure = cells, mark: str = "…") -> Line:
    """The line cut to `width` cells, with a mark if something is left out."""
    if width_of(line, measure) <= width:
        return line
    spans: list[Span] = []
    room = width - measure(mark)
    for span in line:
        size = measure(span.text)
        if size > room:
            part = span.text[: fit(span.text, room, measure)] if room > 0 else ""
            if part and measure(part) <= room:
                spans.append(Span(part, span.role))
            break
        spans.append(span)
        room -= size
    return (*spans, Span(mark, Tone.DIM))


def spread_ends(left: Line, right: Line, width: int, measure: Measure = cells) -> Line:
    """Two parts at the ends of one line; the left part is cut if both do not fit."""
    end = width_of(right, measure)
    room = max(0, width - end - 1)
    left_part = clip(left, room, measure)
    gap = " " * max(1, width - end - width_of(left_part, measure))
    return (*left_part, Span(gap), *right)


def highlight(line: Line, start: int, end: int, role: Tone) -> Line:
    """The line with characters `start` to `end` in another role."""
    head, rest = split_line(line, start)
    middle, tail = split_line(rest, end - start)
    return (*head, *(Span(text, role) for text, _ in middle), *tail)


def mark_matches(line: Line, needle: str) -> Line:
    """The line with every occurrence of `needle` marked, ignoring case."""
    if not needle:
        return line
    plain_text = text_of(line)
    text, wanted = plain_text.lower(), needle.lower()
    if len(text) != len(plain_text):  # some capitals have two lower-case letters, such as `İ`
        text, wanted = plain_text, needle
    position = text.find(wanted)
    while position >= 0:
        line = highlight(line, position, position + len(wanted), Tone.MATCH)
        position = text.find(wanted, position + len(wanted))
    return line


def wrap_line(line: Line, width: int, measure: Measure = cells, at_spaces: bool = True, needle: str = "") -> list[Line]:
    """The line as rows of at most `width` cells, further ones indented below its field or gutter. Every occurrence of
    `needle` is marked, even if it continues on the next row."""
    width = max(1, width)  # a widget in a terminal of one cell has fewer than none between its margins
    if width_of(line, measure) <= width:
        return [mark_matches(line, needle)]
    hang = _further_rows_begin(line, width, measure)
    rows: list[Line] = []
    rest = mark_matches(line, needle)
    while True:
        room = width if not rows else width - width_of(hang, measure)
        if width_of(rest, measure) <= room:
            rows.append((*hang, *rest) if rows else rest)
            return rows
        text = text_of(rest)
        at = _break(text, room, measure) if at_spaces else fit(text, room, measure)
        head, rest = split_line(rest, at)
        if at_spaces and text[at - 1] == " ":
            head = (*head[:-1], Span(head[-1].text[:-1], head[-1].role))  # the space that the row was broken at
        rows.append((*hang, *head) if rows else head)


def _further_rows_begin(line: Line, width: int, measure: Measure) -> Line:
    """The beginning of further rows: the gutter again, or blanks below a field's name."""
    first = line[0]
    size = measure(first.text)
    if len(line) > 1 and size * 3 < width * 2:
        if first.role is Tone.RULE:
            return (first,)
        # A sentence that names a key begins as a field does, with its words before the key.
        names = first.role in (Tone.KEY, Tone.DIM) and not first.text.endswith("; ")
        if names or (size <= GUTTER and first.role is not Tone.PRESS):
            return (Span(" " * size),)
    blanks = len(first.text) - len(first.text.lstrip(" "))
    return (Span(" " * blanks),) if 0 < blanks * 2 < width else EMPTY


def _break(text: str, room: int, measure: Measure) -> int:
    most = fit(text, room, measure)
    space = text.rfind(" ", 0, most + 1)
    # A break at a space near the beginning would leave the row nearly empty, so a long word is broken instead.
    if space > most // 3 and text[:space].strip():
        return space + 1
    return most


def split_line(line: Line, at: int) -> tuple[Line, Line]:
    """The line in two, at a character."""
    head: list[Span] = []
    position = 0
    for index, span in enumerate(line):
        stop = position + len(span.text)
        if stop <= at:
            head.append(span)
            position = stop
            continue
        cut = at - position
        if cut > 0:
            head.append(Span(span.text[:cut], span.role))
        return tuple(head), (Span(span.text[cut:], span.role), *line[index + 1 :])
    return tuple(head), EMPTY


def plain(lines: Sequence[Line]) -> str:
    """Lines as text, for a headless report."""
    return "\n".join(text_of(line).rstrip() for line in lines)


# -- A sheet: the content of one view as lines, which are made when they are shown -----------------------------------


class LineSheet:
    """The content of a view as logical lines. This class stores them; others make a line when it is shown."""

    pinned = 0
    """The number of first lines that stay visible while the other lines are scrolled."""

    def __init__(self, lines: Sequence[Line], focus: int = 0, copy_text: Callable[[], str] | None = None) -> None:
        """`focus` is the line that must be visible when the sheet is opened."""
        self.lines, self.focus = lines, focus
        self._copied = copy_text

    def __len__(self) -> int:
        return len(self.lines)

    def line(self, index: int) -> Line:
        """One logical line."""
        return self.lines[index]

    def unbroken(self, index: int) -> Line:
        """The line as displayed without wrapping."""
        return self.line(index)

    def rows(self, index: int, width: int, measure: Measure = cells, needle: str = "") -> Sequence[Line]:
        """The line wrapped to a width, every occurrence of `needle` marked."""
        return wrap_line(self.unbroken(index), width, measure, needle=needle)

    def height(self, index: int, width: int, measure: Measure = cells) -> int:
        """The number of rows of the line at a width."""
        return len(self.rows(index, width, measure))

    def find(self, needle: str, start: int, step: int) -> int | None:
        """The next line that contains `needle`, ignoring case, from `start` in steps of 1 or -1."""
        wanted, count = needle.lower(), len(self)
        lines = range(start, count if step > 0 else -1, step) if 0 <= start < count else ()
        return next((index for index in lines if wanted in text_of(self.line(index)).lower()), None)

    def copy_text(self) -> str:
        """The text to copy from the view: the result of `copy_text`, if it was given, else the lines."""
        return self._copied() if self._copied is not None else "\n".join(text_of(line) for line in self.lines)
