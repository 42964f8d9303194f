"""Finds signs in a text: a tool call that a server's parser left there as markup, an end in the middle, reasoning
without an answer.

Such markup is only reported, never read as a call. It counts only outside code blocks, because texts explain these
formats; and if the tools of the request are known, it must name one of them.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from loop_core.judge.arguments import ArgumentShape, parse

_NAME_RANGE = 4_000
"""The number of characters after a mark in which the tool's name is searched. Arguments may precede it."""
_MOST_OPENINGS = 100
"""The largest number of openings of one markup that are examined. A hostile text may hold many."""
_JSON_NAME = r'"(?:name|tool_name|recipient_name|function)"\s*:\s*"([^"\\]{1,200})"'
_IN_TAG = r'\s*[\w:.|\uff5c-]*\s*name="([^"<>]{1,200})"'


class CallMark(NamedTuple):
    """A markup for calls: the text that opens a call, and the place of the tool's name."""

    title: str
    opening: str
    """A pattern of the text that opens a call, compiled when first used. A group `name` in it is the tool's name."""
    name_pattern: str | None = None
    """A pattern that is searched after the opening if that does not hold the name. Its group 1 is the tool's name."""
    until: str = ""
    """The mark at which the search for the name ends; empty if only the range limits it."""


def _opening(pattern: str) -> str:
    return pattern.replace("NAME", r"(?P<name>[\w.:/-]{1,200}?)")


CALL_MARKS: tuple[CallMark, ...] = (
    CallMark("Hermes, Qwen", _opening(r"<tool_call>\s*(?=[{\[])"), _JSON_NAME, "</tool_call>"),
    CallMark("Qwen XML, Llama, Seed", _opening(r"<function=NAME\s*>")),
    CallMark("GLM", _opening(r"<(?:\w{1,20}_)?tool_call>\s*NAME\s*(?=<(?:tool_sep|(?:\w{1,20}_)?arg_key|/\w{1,20})>)")),
    CallMark("Anthropic, MiniMax, xAI", _opening(r'<(?:[\w-]{1,20}:)?(?:invoke|function_call)\s+name="NAME"')),
    CallMark("Jamba, MiniMax", _opening(r"<(?:tool_calls|TOOLCALL)>\s*(?=[{\[])"), _JSON_NAME, "</"),
    CallMark("Olmo", _opening(r"<function_calls>\s*NAME\(")),
    CallMark("Mistral", _opening(r"\[TOOL_CALLS\]\s*(?=[{\[])"), _JSON_NAME),
    CallMark("Mistral, named", _opening(r"\[TOOL_CALLS\]\s*NAME\s*(?=\[ARGS\]|\[CALL_ID\]|\{)")),
    CallMark("Llama", _opening(r"<\|python_tag\|>\s*(?=\{)"), _JSON_NAME),
    CallMark("Llama, Python", _opening(r"<\|python_(?:tag|start)\|>\s*\[?\s*NAME(?:\.call)?\(")),
    CallMark("DeepSeek", _opening(
        r"<[|\uff5c]tool[\u2581_]calls?[\u2581_]begin[|\uff5c]>\s*(?:function<[|\uff5c]tool[\u2581_]sep[|\uff5c]>)?"
        r"\s*NAME\s*(?=<[|\uff5c]tool|\n|$)")),
    CallMark("DeepSeek DSML", _opening(r"<[|\uff5c]+DSML[|\uff5c]+"), _IN_TAG, ">"),
    CallMark("Kimi K2", _opening(r"<\|tool_call_begin\|>\s*(?:functions\.)?NAME(?::\d+)?\s*(?=<\||$)")),
    CallMark("Kimi K3", _opening(r'<\|open\|>[^<]{0,200}?\btool="NAME"')),
    CallMark("gpt-oss", _opening(r"\bto=functions\.NAME(?=[\s<]|$)")),
    CallMark("Granite, Phi", _opening(r"<\|tool_call\|>\s*(?=[{\[])"), _JSON_NAME),
    CallMark("LFM", _opening(r"<\|tool_call_start\|>\s*\[\s*NAME\(")),
    CallMark("Functionary", _opening(r"<\|recipient\|>\s*NAME\s*(?=<\|)")),
    CallMark("InternLM", _opening(r"<\|action_start\|>\s*<\|plugin\|>\s*(?=\{)"), _JSON_NAME),
    CallMark("Command", _opening(r"<\|START_ACTION\|>\s*(?=[{\[])"), _JSON_NAME),
    CallMark("Gemma", _opening(r"<start_function_call>\s*call:NAME\s*(?=\{|$)")),
)
"""The marks that open a call in the text of a model, with the models that write them (from their chat templates; vLLM's
and SGLang's tool parsers name the same marks)."""


class Leak(NamedTuple):
    """A call that was left in a text: characters `start` to `end` open it and name its tool."""

    title: str
    tool: str
    start: int
    end: int


def find_leak(text: str, tools: Collection[str] | None) -> Leak | None:
    """The first call that a text holds as markup, outside code; `tools` are the declared names, None if unknown. Then
    a text that ends with a sentence may explain the markup."""
    if not any(sign in text for sign in CALL_SIGNS) or (tools is None and text.rstrip().endswith(_SENTENCE_ENDS)):
        return None
    code = _code(text)
    found = [leak for leak in _leaks(text, tools) if not any(start <= leak.start < end for start, end in code)]
    return min(found, key=lambda leak: leak.start, default=None)


_SENTENCE_ENDS = (".", "!", "?", ":", "。", "！", "？")
CALL_SIGNS = ("<", "[TOOL_CALLS]", "to=functions.")
"""Every mark holds one of these texts. Most texts hold none, and need no further search."""


def _leaks(text: str, tools: Collection[str] | None) -> Iterator[Leak]:
    for mark in CALL_MARKS:
        for opened in islice(re.finditer(mark.opening, text), _MOST_OPENINGS):
            for name, end in _names(mark, opened, text):
                if tools is None or name in tools or name.removeprefix("functions.") in tools:
                    yield Leak(mark.title, name, opened.start(), end)
                    break


def _names(mark: CallMark, match: re.Match[str], text: str) -> Iterator[tuple[str, int]]:
    if mark.name_pattern is None:
        yield match["name"], match.end("name")
        return
    limit = text.find(mark.until, match.end()) if mark.until else -1
    end = min(match.end() + _NAME_RANGE, len(text) if limit < 0 else limit)
    for found in re.compile(mark.name_pattern).finditer(text, match.end(), end):
        yield found[1], found.end(1)


_FENCE = re.compile(r"^[ \t>]{0,8}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]+?\1(?!`)")
"""A pattern of code inside a line."""


class Fence(NamedTuple):
    """A block of code between fences; without a closing fence it reaches to the end of the text."""

    start: int
    end: int
    closed: bool


def fences(text: str) -> Iterator[Fence]:
    """The fenced code blocks of a text, in order."""
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            if "`" not in line[2]:  # a line of inline code
                opened = line
        elif line[1].startswith(opened[1]) and not line[2].strip():
            yield Fence(opened.start(), line.end(), True)
            opened = None
    if opened is not None:
        yield Fence(opened.start(), len(text), False)


def _code(text: str) -> list[tuple[int, int]]:
    return [*((start, end) for start, end, _ in fences(text)), *(found.span() for found in INLINE.finditer(text))]


# -- Text that visibly stops in the middle: what its last characters show --------------------------------------------
# A sign is a character or a word after which a text goes on: a comma, an open bracket, an open code fence, a word that
# only joins others. A missing full stop is no sign: a quarter of all clean answers end without one. Words that may end
# a sentence as well (`not`, German `an`, a German auxiliary) are in no table.


_TAIL_CHARS = 2_000
"""The number of characters at the end of a text that show its language and its last line."""
_FEWEST_WORDS = 3
"""The least number of words of a text in which the last word can be a sign: `a` alone may answer a question with
choices."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_LAST_WORD = re.compile(_WORD.pattern + r"\Z")
_WORD_CHARS = 40
"""The number of characters at the end of a text in which its last word is searched. No function word is longer."""
COMMAS = (",", "\uff0c", "\u3001", "\u060c", "\u055d")
_OPENING = "([{\uff08\u3010\u300c\u300e\u300a"
_CLOSING = ")]}\uff09\u3011\u300d\u300f\u300b"
_BRACKET = re.compile(f"[{re.escape(_OPENING + _CLOSING)}]")
_OPENS_NOTHING = re.compile("|".join((
    r"[:;=][-'^]?[(\[{]", r"[\\\x1b][(\[{]", r"['\"\u2018\u201c\u00ab][(\[{]['\"\u2019\u201d\u00bb]",
    r"\$[^$\n]+\$", r"[\[\]][^\[\]]{1,40}[,;][^\[\]]{1,40}\[",
)))
"""Brackets that open nothing: of a face, a regular expression, a terminal's escape sequence, a formula, an interval
(`]0, 1[`), or in quotes."""
_EMPHASIS = " \t\r\n*_"  # Markdown closes emphasis after the last word


class Sign(NamedTuple):
    """The characters that show that a text stops in the middle, and the reason in words."""

    text: str
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
"""Language -> words with which a complete text does not end: articles, conjunctions, prepositions and the like. The
other words of a text show its language."""

_EVERY_FUNCTION_WORD = frozenset().union(*FUNCTION_WORDS.values())

PARTICLES: Mapping[str, tuple[str, ...]] = {
    "zh": ("的", "和", "与", "在", "是", "把", "被", "对", "从", "向", "或", "及", "而", "但", "因为", "如果", "由于",
           "为了"),
    "ja": ("は", "を", "に", "へ", "や", "そして", "または", "および"),
    "ko": ("를", "그리고", "또는", "하지만", "그러나", "때문에"),
}
"""Language -> words that end no complete text, for languages that write without spaces or join such words to others."""


def _comma(text: str, end: int) -> Sign | None:
    last = text[end - 1]
    return Sign(f"it ends in a comma ({last!r})", end - 1, end) if last in COMMAS else None


def _fence(text: str, end: int) -> Sign | None:
    # Nested blocks, and fences after other words of a line, are paired by counting. Tildes are not counted: a line of
    # them may separate two scenes.
    if text.count("```") % 2 == 0:
        return None
    opened = next((fence for fence in fences(text) if not fence.closed), None)
    if opened is None or not text[opened.start : end].strip("`~> \t\n"):  # a bare fence as the last line only closes
        return None
    return Sign("it ends inside a code fence", opened.start, min(opened.start + 3, end))


def _bracket(text: str, end: int) -> Sign | None:
    """A bracket that is never closed: one of the last line, or one of the whole text if that is JSON."""
    begun = len(text) - len(text.lstrip())
    if text[begun : begun + 1] in ("{", "["):
        shape = parse(f'{{"":{text[begun:end]}').shape  # as a member, since `parse` reads only objects
        whole = parse(f'{{"":{text[begun:end]}}}').shape
        if ArgumentShape.COMPLETE is whole:
            return None
        if shape is ArgumentShape.CUT:
            return Sign(f"the JSON that begins with {text[begun]!r} never ends", begun, begun + 1)
    start = max(text.rfind("\n", 0, end) + 1, end - _TAIL_CHARS)
    if all(text.find(bracket, start, end) < 0 for bracket in _OPENING):
        return None
    spans = [span.span() for each in (INLINE, _OPENS_NOTHING) for span in each.finditer(text, start, end)]
    opened: list[int] = []
    for bracket in _BRACKET.finditer(text, start, end):
        place = bracket.start()
        if any(first <= place < last for first, last in spans):
            continue
        if text[place] in _OPENING:
            opened.append(place)
        elif opened:
            opened.pop()
    if not opened:
        return None
    return Sign(f"the bracket {text[opened[-1]]!r} is never closed", opened[-1], opened[-1] + 1)


def _function_word(text: str, end: int) -> Sign | None:
    word = _LAST_WORD.search(text, max(0, end - _WORD_CHARS), end)
    if word is None or word[0].lower() not in _EVERY_FUNCTION_WORD:
        return None
    words = [found[0].lower() for found in _WORD.finditer(text, max(0, end - _TAIL_CHARS), end)]
    if len(words) < _FEWEST_WORDS:
        return None
    last, start = word[0], word.start()
    if text[start - 1].isalnum() or text[start - 1] in "/._-@\\":
        return None  # part of a path or a name
    if not (last.islower() or (len(last) > 2 and last.istitle())):
        return None  # `Option A`, `IT`
    occurrences = Counter(words[:-1])
    counts = {name: sum(occurrences[word] for word in table) for name, table in FUNCTION_WORDS.items()}
    most = max(counts.values())
    # `in` is English, German, Italian and Dutch: the words before it tell which table counts.
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
"""The functions that find a sign that a text stops in the middle, in the order in which they are tried. The first sign
is reported."""


def stops_in_the_middle(text: str) -> Sign | None:
    """The sign that a text stops in the middle; None if nothing does."""
    end = len(text.rstrip(_EMPHASIS))
    return next((sign for finder in SIGNS if end and (sign := finder(text, end)) is not None), None)


ENDS_NO_CLAUSE: Mapping[str, frozenset[str]] = {
    "en": _words("the an and or nor than whether unless whereas although my your our their its every as"),
    "de": _words("und sondern weil obwohl während dass bevor nachdem sowie vom zum zur im beim am eines"),
    "fr": _words("et ou du des au aux les ces cette leurs ses lorsque puisque parce"),
    "es": _words("el los las del al y o u pero sino aunque mis tus sus"),
    "it": _words("il gli le della dei degli delle dello alla ai alle dal dalla nella nei sul sulla e ed poiché mentre"),
    "pt": _words("os as do da dos ao à pelo pela embora enquanto seus suas"),
    "nl": _words("de een en omdat hoewel terwijl"),
    "pl": _words("i oraz lub albo ale ponieważ że który która które gdy jeśli w we z ze na od dla przy nad pod między"),
    "ru": _words("и или но чтобы если в во с со к ко об от для из по при между который которая которое которые"),
    "tr": _words("ve veya fakat çünkü"),
    "zh": _words("因为 如果 由于 为了"),
    "ja": _words("そして または および"),
    "ko": _words("그리고 또는 하지만 그러나"),
}
"""Language -> those of the words above that do not even end a question, a title or a short answer. Others do: `what is
it used for`, `I can help with that`, `danke sehr`."""
_NO_LAST_WORDS = frozenset().union(*ENDS_NO_CLAUSE.values())
_SIGN_OFF_CHARS = 36
"""The largest length of a last line whose comma may end a letter: `Looking forward to hearing from you,`."""


def stops_short(text: str) -> Sign | None:
    """The sign that a text stops in the middle, for a text that alone indicates a cut; None if a whole text may end so
    too: with the closing line of a letter, or a word such as `for` or `that`."""
    sign = stops_in_the_middle(text)
    if sign is None:
        return None
    last = text[sign.start : sign.end]
    if last in COMMAS:
        return sign if sign.end - text.rfind("\n", 0, sign.end) - 1 > _SIGN_OFF_CHARS else None
    return sign if not last.isalpha() or last.lower() in _NO_LAST_WORDS else None


# -- Reasoning in the text: a server without a reasoning parser leaves it there ---------------------------------------


THINKING_MARKS: Mapping[str, str] = {
    "<think>": "</think>",  # DeepSeek, Qwen and most others
    "<thinking>": "</thinking>",
    "<reasoning>": "</reasoning>",
    "<thought>": "</thought>",  # Gemini behind its OpenAI-compatible endpoint, beside `extra_content.google.thought`
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",  # Mistral
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command
    "<|channel|>analysis<|message|>": "<|start|>assistant",  # gpt-oss; servers may not render its `<|end|>`
}
"""Mark that opens a model's reasoning -> the mark that closes it, from the models' chat templates."""


def only_thinks(text: str) -> Sign | None:
    """The sign that a text is reasoning and nothing else: it begins with reasoning that is never closed, or that
    nothing follows. A chat template may open the reasoning itself; then the text only closes it."""
    content = text.strip()
    for opening, closing in THINKING_MARKS.items():
        if content.startswith(opening) or (content.endswith(closing) and opening not in content):
            end = content.find(closing)
            if end < 0 or end + len(closing) == len(content):
                start = len(text) - len(text.lstrip())
                note = (f"it is reasoning after {opening}" if content.startswith(opening)
                        else f"it ends with {closing}")
                return Sign(f"{note}, and nothing follows", start, start + len(content))
    return None
