"""Text that stops in the middle: what shows it, and what does not."""

from __future__ import annotations

from loop_core.judge.signs import stops_in_the_middle, stops_short
from tests.scenes.rows import each_row

LANGUAGES: dict[str, tuple[str, ...]] = {
    "en": ("It happens when the Moon passes between the Earth and the", "He said that he was on his way to"),
    "de": ("Die Hauptstadt von Frankreich ist Paris, und der", "Das Ergebnis der Messung wurde gegen"),
    "fr": ("La capitale de la France est Paris et elle se trouve dans", "Le chat est sur la table avec une"),
    "es": ("La capital de Francia es París y se encuentra en el", "El gato está sobre la mesa para"),
    "it": ("La capitale della Francia è Parigi e si trova nella", "Il gatto è sul tavolo perché"),
    "pt": ("A capital da França é Paris e fica no", "O gato está na mesa com uma"),
    "nl": ("De hoofdstad van Frankrijk is Parijs omdat het", "Het huis is groot maar de tuin van"),
    "pl": ("Stolicą Francji jest Paryż oraz", "Kot jest na stole ale nie pod krzesłem ponieważ"),
    "ru": ("Столица Франции — Париж, "
           "и она находится на",),
    "tr": ("Bu film çok güzel ama", "Kedi için süt ve"),
    "zh": ("法国的首都是巴黎，它位于塞纳河的", "这是因为"),
    "ja": ("フランスの首都は", "私はパリを"),
    "ko": ("프랑스의 수도는 파리이며 그리고", "나는 파리를"),
}
"""Language -> beginnings of sentences that end in a word after which they go on."""


@each_row("language", LANGUAGES)
def test_a_word_that_only_joins_others_is_no_last_word(language: str) -> None:
    for text in LANGUAGES[language]:
        for end in ("", " ", "\n", "**"):
            seen = stops_in_the_middle(text + end)
            assert seen is not None, text
            assert text.endswith(text[seen.start : seen.end])


@each_row("comma", [",", "，", "、", "،", "՝"])
def test_a_text_does_not_end_in_a_comma(comma: str) -> None:
    seen = stops_in_the_middle(f"First this{comma} then that{comma} ")
    assert seen is not None
    assert (seen.start, seen.end) == (len("First this, then that"), len("First this, then that,"))


@each_row(("text", "at"), [
    ("Call it (as before", "("), ("See [the guide", "["), ("f(a, {b", "{"), ("「これ", "「"),
    ("so (", "("),
    ('{"a": [1, 2], "b"', "{"), ('[{"a": 1}, {"a"', "["), ('{"a": "one (two) ', "{"),
])
def test_an_open_bracket_is_closed_later(text: str, at: str) -> None:
    seen = stops_in_the_middle(text)
    assert seen is not None
    assert text[seen.start : seen.end] == at


def test_an_open_fence_is_closed_later() -> None:
    assert stops_in_the_middle("As follows:\n```py\nprint(1)") is not None
    assert stops_in_the_middle("As follows:\n```py\nprint(1)\n```") is None
    assert stops_in_the_middle("As follows:\n```py") is not None


def test_a_fence_that_only_closes_shows_nothing() -> None:
    """Agents after ReAct write `Action Input: ```json`; that fence opens nothing by itself (a public cassette)."""
    assert stops_in_the_middle('Action Input: ```json\n{"input": "all"}\n```') is None
    assert stops_in_the_middle("> quoted ```\n> ```\n") is None


@each_row("text", [
    "", "  ", "The answer is 42.", "The answer is 42", "Paris", "yes", "no", "a", "the", "Option A", "1. one\n2. two",
    "It is the Who that I like", "We must do it with IT", "That is all (or nearly).", "I like it :(", "sorry ;(",
    '{"a": [1, 2]}', "[1, 2]", '"to be, or not to be"', "in the range [0, 1)", "use `f(` here", "**Done**",
    "some cells have to die", "Ich rufe dich morgen an", "Das weiß ich nicht", "weil es so ist",
    "a) this\nb) other",
    "法国的首都是巴黎", "| a | b |\n|---|---|\n| 1 | 2 |", "see https://example.com/the",
])
def test_everything_else_may_be_an_end(text: str) -> None:
    assert stops_in_the_middle(text) is None


@each_row("text", [
    "what is it used for", "what is it made of", "Who is it by", "Please come in", "He is the man I was looking at",
    "The answer is a", "Never seen this since", "Dear Ann,\nI am well.\n\nBest regards,\n", "Sincerely,",
    "Here is the pattern: ^\\(", "all is well :(", "\u4f60\u597d\uff0c\u6211\u662f",
    "Hey! I can help with that", "It was late. We went home because of what he is looking at",
    "1. The World We Live In\n2. Something to Dream About", "Gern. Ich mag das", "Ja. Vielen Dank, danke sehr",
    "Cześć! Dziękuję bardzo", "Ciao! Mi piace molto", "Olá. Está aqui onde está",
    "\u4f60\u597d\uff01\u4f60\u8bf4\u5f97\u5bf9", "\u5b83\u5f88\u597d\u3002\u8fd9\u662f\u6211\u7684",
    "\u306f\u3044\u3002\u826f\u3044\u4e00\u65e5\u3092",
    "All is well.\n\nLooking forward to hearing from you,", "\u5f88\u597d\u3002\n\u795d\u597d\uff0c",
    "not so well :-(", "oh no :'(", "Use '(' to open a group", "The lexer expects \u201c[\u201d here",
    "All tests \x1b[32mpassed\x1b[0m",
    "It is defined on $]0; 1[$ alone", "It is defined on ]0, 1[ alone", "The limit is $\\left( x \\right.$",
    '```json\n{"a": 1}```', '```json\n{"a": 1}```\n\nThis is all.', "Here: ```py\nprint(1)\n```\nThis is all.",
    "```markdown\n# Use\n```bash\nnpm i\n```\nThen go.\n```\n\nThis is all.", "It ends.\n\n~~~\n\nIt begins.",
])
def test_a_whole_text_may_end_so(text: str) -> None:
    """A query, a title, a short answer, the end of a letter, a pattern, a block of code within another one or behind
    other words: nothing but the text speaks of a cut."""
    assert stops_short(text) is None


@each_row(("text", "at"), [
    ("what is the use of the", "the"), ("It began at 09:14, when it was drained,", ","),
    ("one (two", "("), ("the name 'a' (or '('", "("), ("```py\nprint(1)", "```"),
    ("```py\nprint(1)\n```\nThen:\n```js\nf()", "```"),
    # a sentence of each language
    ("Die Stadt liegt am Fluss und", "und"), ("La ville est sur la rive du", "du"),
    ("La ciudad está en la orilla de los", "los"), ("La città si trova sulla riva della", "della"),
    ("A cidade fica na margem do", "do"), ("Het huis is groot omdat", "omdat"),
    ("Kot jest na stole ponieważ", "ponieważ"), ("Город находится на берегу реки, которая", "которая"),
    ("Bu film çok güzel çünkü", "çünkü"), ("\u5b83\u5f88\u597d\u3002\u8fd9\u662f\u56e0\u4e3a", "\u56e0\u4e3a"),
    ("良い本です。そして", "そして"), ("프랑스의 수도는 파리이며 그리고", "그리고"),
])
def test_no_whole_text_ends_so(text: str, at: str) -> None:
    sign = stops_short(text)
    assert sign is not None
    assert text[sign.start : sign.end] == at
