"""Text that visibly stops in the middle: what its last characters show.

A sign is a character or a word after which a text goes on: a comma, an open bracket, an open fence of code, a word
that only joins others. A missing full stop is none: a quarter of all clean answers end without one. Words that may
end a sentence as well (`not`, German `an`, a German auxiliary) stand in no table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from loop_core.arguments import Shape, parse
from loop_core.markup import INLINE, fences

_TAIL = 2_000
"""Characters at the end by which the language is told."""
_FEWEST = 3
"""Words that a text must have for its last one to be a sign: `a` alone answers a question with choices."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
COMMAS = (",", "\uff0c", "\u3001", "\u060c", "\u055d")
_OPENING = "([{\uff08\u3010\u300c\u300e\u300a"
_CLOSING = ")]}\uff09\u3011\u300d\u300f\u300b"
_FACES = ":;="
_EMPHASIS = " \t\r\n*_"


class Sign(NamedTuple):
    """What shows that a text stops in the middle, and the characters that show it."""

    said: str
    start: int
    end: int


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "en": _words(
        "the a an and or but nor because although though while whereas if unless until since than whether "
        "of to in into onto for with without from by at as between among through during towards toward "
        "per via about against within is are was were be been has have had will would can could should "
        "might must that which whose when my your his her our their its every each such"
    ),
    "de": _words(
        "der die das den dem des eine einen einem einer eines und oder aber sondern denn weil obwohl "
        "während dass wenn als ob bevor nachdem damit ohne von vom zum zur im ins in am für beim gegen "
        "zwischen seine seinen seiner ihre ihren ihrer mein dein unser kein keine sowie sehr"
    ),
    "fr": _words(
        "le la les l un une des du de d et ou mais car donc ni que qui dont où si quand lorsque parce "
        "puisque pour par avec sans sur sous dans en au aux à chez vers entre pendant est sont était ont "
        "peut peuvent son sa ses leur leurs mon ma mes notre votre ce cet cette ces ne se très"
    ),
    "es": _words(
        "el la los las lo un una unos unas y e o u pero sino porque aunque mientras que quien cuyo donde "
        "cuando si de del a al en con sin por para sobre entre hasta desde hacia según es son era está "
        "están ha han puede pueden su sus mi mis tu tus nuestro cada como se muy"
    ),
    "it": _words(
        "il lo la i gli le un uno una e ed o ma perché poiché mentre che cui dove quando se di del della "
        "dei degli delle dello a al alla ai alle da dal dalla in nel nella nei con senza per su sul sulla "
        "tra fra è sono era ha hanno può possono suo sua suoi loro mio ogni come si molto"
    ),
    "pt": _words(
        "o a os as um uma uns umas e ou mas porque embora enquanto que quem cujo onde quando se de do da "
        "dos das em no na nos nas ao à com sem por pelo pela para sobre entre até desde é são era está "
        "estão tem pode podem seu sua seus suas meu minha cada como muito"
    ),
    "nl": _words(
        "de het een en of maar want omdat hoewel terwijl dat die als wanneer van voor met zonder in naar "
        "bij onder tussen tegen te hun haar mijn jouw onze geen zeer"
    ),
    "pl": _words(
        "i oraz lub albo ale ponieważ że który która które gdy jeśli w we z ze na do od dla po przez przy "
        "nad pod między bez o jest są był jego jej ich bardzo"
    ),
    "ru": _words(
        "и или но а что чтобы потому если когда в во на с со к ко о об от для из по при "
        "до за без между как чем который которая которое которые очень"
    ),
    "tr": _words(
        "ve veya ama fakat çünkü ki için ile bir gibi kadar her çok"
    ),
}
"""Language -> words that are not a text's last: articles, conjunctions, prepositions and the like. Which language it is
tell the words themselves."""

PARTICLES: Mapping[str, tuple[str, ...]] = {
    "zh": ("的", "和", "与", "在", "是", "把", "被", "对", "从", "向", "或", "及", "而", "但", "因为", "如果", "由于",
           "为了"),
    "ja": ("は", "を", "に", "へ", "や", "そして", "または", "および"),
    "ko": ("를", "그리고", "또는", "하지만", "그러나", "때문에"),
}
"""The same for languages that write without spaces, or join such words to others."""


def _comma(text: str, end: int) -> Sign | None:
    last = text[end - 1]
    return Sign(f"it ends in a comma ({last!r})", end - 1, end) if last in COMMAS else None


def _fence(text: str, end: int) -> Sign | None:
    opened = next((fence for fence in fences(text) if not fence.closed), None)
    return None if opened is None else Sign("it ends inside a fence of code", opened.start, min(opened.start + 3, end))


def _bracket(text: str, end: int) -> Sign | None:
    """A bracket of the last line that nothing closes; where the text is JSON, one of all of it."""
    begun = len(text) - len(text.lstrip())
    if text[begun : begun + 1] in ("{", "["):
        shape = parse(f'{{"":{text[begun:end]}').shape  # the beginning of an object whatever it is the beginning of
        whole = parse(f'{{"":{text[begun:end]}}}').shape
        if Shape.COMPLETE is whole:
            return None
        if shape is Shape.CUT:
            return Sign(f"the JSON that begins with {text[begun]!r} never ends", begun, begun + 1)
    start = max(text.rfind("\n", 0, end) + 1, end - _TAIL)
    code = [span.span() for span in INLINE.finditer(text, start, end)]
    opened: list[int] = []
    for place in range(start, end):
        if any(first <= place < last for first, last in code):
            continue
        if text[place] in _OPENING and not (place and text[place - 1] in _FACES):
            opened.append(place)
        elif text[place] in _CLOSING and opened:
            opened.pop()
    if not opened:
        return None
    return Sign(f"the bracket {text[opened[-1]]!r} is never closed", opened[-1], opened[-1] + 1)


def _function_word(text: str, end: int) -> Sign | None:
    words = list(_WORD.finditer(text, max(0, end - _TAIL), end))
    if len(words) < _FEWEST or words[-1].end() != end:
        return None
    last, start = words[-1][0], words[-1].start()
    if text[start - 1].isalnum() or text[start - 1] in "/._-@\\":
        return None  # of a path or a name
    if not (last.islower() or (len(last) > 2 and last.istitle())):
        return None  # `Option A`, `IT`
    said = Counter(word[0].lower() for word in words[:-1])
    counts = {name: sum(said[word] for word in table) for name, table in FUNCTION_WORDS.items()}
    most = max(counts.values())
    if most and any(count == most and last.lower() in FUNCTION_WORDS[name] for name, count in counts.items()):
        return Sign(f"its last word is {last!r}", start, end)
    return None


def _particle(text: str, end: int) -> Sign | None:
    for table in PARTICLES.values():
        for particle in table:
            if text.endswith(particle, 0, end):
                return Sign(f"its last word is {particle!r}", end - len(particle), end)
    return None


SIGNS: tuple[Callable[[str, int], Sign | None], ...] = (_comma, _fence, _bracket, _function_word, _particle)
"""What may show it; the first that does is told."""


def stops_in_the_middle(text: str) -> Sign | None:
    """What shows that a text stops in the middle; None where nothing does."""
    end = len(text.rstrip(_EMPHASIS))
    return next((seen for sign in SIGNS if end and (seen := sign(text, end)) is not None), None)
