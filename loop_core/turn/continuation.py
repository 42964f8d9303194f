"""The data of a continuation: prompts that ask a model to continue a cut answer, openings with which a model may begin
instead, and segments and seams as values.

`seam` needs every prompt of the engine to keep prompts out of the merged text, because a model may repeat a prompt in
its answer.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from loop_core.values import Message

HINT_POINTS = (
    "Previous response was truncated by token limit.",
    "Continue exactly from where you left off.",
    "If you intended a tool call, emit one complete tool call payload only.",
    "Do not repeat already-sent text.",
)
"""The continuation hint of ZeroClaw RFI 2309, as its four points in order."""

QUOTE_MARKS = ("last", "last_words")
"""Names for the tags around the words to quote. The first name that the conversation does not contain is used."""

AGAIN = "Your last message did not begin so. Add no greeting, apology or remark, no quotation marks and no code fence."
"""The sentence by which a hint asks for the quoted words a second time."""

EMPTY = "Your previous response was empty: it held neither text nor a tool call."
"""The beginning of the message that repeats a request after an empty answer."""

_BETWEEN = "Begin by repeating exactly the characters between "


def mark_for(text: str, history: Sequence[Message]) -> str:
    """Returns a name for tags that occurs neither in a text nor in these messages; the last candidate if all occur."""
    # Both names may occur in a text about this engine. The last one is used then: asking under an ambiguous name still
    # works, since `find_quotation` removes no tags that the answer itself contains.
    # The messages are read only up to the first that has the tags: earlier hints of a long turn have them.
    return next((mark for mark in QUOTE_MARKS if not has_tags(text, mark)
                 and not any(has_tags(message.text, mark) for message in history)), QUOTE_MARKS[-1])


def has_tags(text: str, mark: str) -> bool:
    """Whether a text contains tags of this name."""
    return f"<{mark}>" in text or f"</{mark}>" in text


def quote_request(mark: str) -> str:
    """The item of the prompt that asks the model to quote the last words. The caller appends them and `</mark>`."""
    return f"{_BETWEEN}<{mark}> and </{mark}>: <{mark}>"


def repeats_request(text: str) -> bool:
    """Whether a message is the engine's hint that asks for the quotation a second time."""
    # AGAIN must be a line of its own: a user may quote the sentence within a message.
    return text.startswith(HINT_POINTS[0]) and f"\n{AGAIN}\n" in text


def prompt_end(text: str, mark: str) -> int:
    """The index at which the list items of the engine's prompt end, if a text begins with them; 0 if it does not."""
    # A model that repeats the prompt may leave out or reorder points, so each is removed wherever it comes next. The
    # last point ends before its tag: the words after it are the quotation, which `find_quotation` looks for.
    points = (EMPTY, *HINT_POINTS, AGAIN, quote_request(mark).removesuffix(f"<{mark}>").rstrip())
    end = 0
    while True:
        rest = text[end:].lstrip()
        point = next((point for point in points if rest.startswith(point)), None)
        if point is None:
            return end
        end = len(text) - len(rest) + len(point)


# -- Beginnings of segments that do not continue the text: chatter, refusals and announced restarts, as a table ------
# A row decides nothing by itself: it is consulted only if the words that were to be quoted first are missing, or for
# the text before them. So a wrong match costs one more request and no text.


class OpeningKind(StrEnum):
    """The kind of text with which a segment begins instead of the continued text."""

    CHATTER = "chatter"
    """The text talks about the answer before it gives the answer."""
    REFUSAL = "refusal"
    """The text says that the model cannot continue, or asks what is meant."""
    RESTART = "restart"
    """The text says that the answer begins again."""


class Opening(NamedTuple):
    """A row of `OPENINGS`: a pattern for the beginning of a segment, matched in lower case with white space and
    quotation marks folded."""

    kind: OpeningKind
    language: str
    pattern: str


def _row(kind: OpeningKind, language: str, *pattern: str) -> Opening:
    return Opening(kind, language, "".join(pattern))


OPENINGS: tuple[Opening, ...] = (
    _row(
        OpeningKind.RESTART, "English",
        r"(?:let me|let's|i'll|i will|allow me to) (?:start|begin|try|redo|rewrite)\b.{0,20}",
        r"\b(?:over|again|anew|from scratch|from the (?:beginning|start|top))",
        r"|(?:re)?start(?:ing)? (?:over|again|anew|from (?:scratch|the (?:beginning|start|top)))",
        r"|here(?:'s| is) (?:the|an?|my|your) (?:complete|full|entire|whole|updated|revised|corrected)\b",
    ),
    _row(
        OpeningKind.REFUSAL, "English",
        r"(?:i'm|i am|we're|we are) (?:very |so |really |truly )?(?:sorry|afraid|unable|not able)\b",
        r"|sorry,? (?:but )?i\b|(?:unfortunately|regrettably),? (?:i|we)\b",
        r"|i (?:can't|cannot|can not|won't|will not|must decline|have to decline)\b",
        r"|i (?:don't|do not) (?:have|see|recall|remember|know)\b",
        r"|as an? (?:ai|artificial|large language|language model)\b",
        r"|(?:it|this) (?:looks|seems|appears)(?: like| as if)? (?:that )?(?:your|the|you|there)\b",
        r"|your (?:last |previous )?(?:message|request|prompt|question) (?:was|is|seems|appears|got)\b",
        r"|(?:could|can|would) you (?:please |kindly )?(?:provide|share|clarify|specify|tell|give|resend)\b",
    ),
    _row(
        OpeningKind.CHATTER, "English",
        r"(?:sure(?: thing)?|certainly|of course|absolutely|gladly|okay|ok|alright|all right|understood|got it|",
        r"no problem|yes|great)\s?(?:[,.!:;-]|\u2013|\u2014)",
        r"|(?:here(?:'s| is| are| comes| you go)|below is|this is|what follows is)\b.{0,30}",
        r"\b(?:rest|remainder|remaining|continuation|continued|next part|go|part you)\b",
        r"|(?:now )?(?:continuing|resuming|picking up|carrying on|going on|to continue|let me continue|let's continue|",
        r"i(?:'ll| will) (?:continue|go on|pick up|resume|carry on)|allow me to continue)\b",
        r"|(?:my )?apologies\b|i apologi[sz]e\b|sorry (?:for|about) (?:the|that|this|my)\b|thank(?:s| you)\b",
        r"|as (?:requested|you (?:asked|requested|wish))\b|continued(?: from)?\b.{0,30}:|continued\)",
    ),
    _row(
        OpeningKind.RESTART, "German",
        r"(?:ich (?:beginne|fange|starte)|lassen sie mich|lass mich)\b.{0,20}\b(?:von vorne?|noch ?mals?|neu|erneut)\b",
        r"|hier ist (?:der|die|das) (?:vollständige|ganze|komplette|überarbeitete)",
    ),
    _row(
        OpeningKind.REFUSAL, "German",
        r"(?:es )?tut mir (?:sehr )?leid\b|leider\b|entschuldigung, (?:aber )?ich\b|ich kann ",
        r"(?:das |dies |dabei |leider )?nicht\b|als (?:ki|künstliche|sprachmodell)\b",
    ),
    _row(
        OpeningKind.CHATTER, "German",
        r"(?:natürlich|gerne?|klar|selbstverständlich|sicher|okay|in ordnung|verstanden)\s?[,.!:]",
        r"|hier (?:ist|kommt|folgt|geht)\b.{0,20}\b(?:rest|fortsetzung|weiter)",
        r"|(?:ich (?:fahre|setze|mache)|weiter geht)\b|fortsetzung\b.{0,20}:|entschuldig(?:ung|en sie) (?:für|die)\b",
    ),
    _row(
        OpeningKind.RESTART, "French",
        r"(?:je (?:recommence|reprends)|permettez-moi de recommencer|recommençons)\b.{0,20}\b(?:début|zéro|tout)\b",
        r"|voici (?:le|la) (?:texte|réponse|version) (?:complète?|entière?|intégrale?|complet|intégral)",
    ),
    _row(
        OpeningKind.REFUSAL, "French",
        r"(?:je suis )?(?:vraiment )?désolée?\b|malheureusement\b|je ne (?:peux|suis|dispose|vois)\b",
        r"|en tant qu(?:e|')\s?(?:ia|intelligence|modèle)|pourriez-vous\b",
    ),
    _row(
        OpeningKind.CHATTER, "French",
        r"(?:bien sûr|certainement|d'accord|très bien|volontiers|entendu|compris)\s?[,.!:]",
        r"|voici (?:la suite|le reste|la fin|la continuation)|(?:je (?:continue|poursuis|reprends)|suite)\b.{0,40}:",
        r"|(?:toutes )?mes excuses\b|veuillez m'excuser\b",
    ),
    _row(
        OpeningKind.REFUSAL, "Spanish",
        r"lo siento\b|lamento\b|lamentablemente\b|desafortunadamente\b|no puedo\b",
        r"|como (?:una? )?(?:ia|inteligencia|modelo)\b|¿podrías?\b",
    ),
    _row(
        OpeningKind.CHATTER, "Spanish",
        r"¡?(?:claro|por supuesto|desde luego|entendido|de acuerdo|vale|con gusto)(?: que sí)?\s?[,.!:]",
        r"|(?:aquí|a continuación|ahí)\b.{0,20}\b(?:resto|continuación|continúa|sigue|tienes)",
        r"|(?:continúo|continuando|sigo|siguiendo)\b|disculp(?:a|e|as)\b|perd[óo]n\b",
    ),
    _row(
        OpeningKind.REFUSAL, "Italian",
        r"mi dispiace\b|purtroppo\b|non (?:posso|sono in grado)\b|(?:come|in quanto) (?:ia|intelligenza|modello)\b",
    ),
    _row(
        OpeningKind.CHATTER, "Italian",
        r"(?:certo|certamente|va bene|d'accordo|ecco|volentieri|capito)\s?[,.!:]",
        r"|ecco (?:il resto|il seguito|la continuazione|la parte)|(?:continuo|proseguo|riprendo|continuando)\b",
        r"|mi scuso\b",
    ),
    _row(
        OpeningKind.REFUSAL, "Portuguese",
        r"(?:sinto|lamento) muito\b|lamento\b|desculpe, (?:mas )?(?:não|eu)\b|infelizmente\b|não (?:posso|consigo)\b",
        r"|como (?:uma? )?(?:ia|inteligência|modelo)\b",
    ),
    _row(
        OpeningKind.CHATTER, "Portuguese",
        r"(?:claro|com certeza|certo|entendido|com prazer)\s?[,.!:]",
        r"|(?:aqui (?:está|vai)|segue)\b.{0,20}\b(?:resto|restante|continuação|continua)|(?:continuando|continuo)\b",
        r"|desculpe (?:a|o|pela|pelo)\b",
    ),
    _row(
        OpeningKind.REFUSAL, "Dutch",
        r"het spijt me\b|helaas\b|sorry, (?:maar )?ik\b|ik kan (?:dat |dit |hier )?(?:helaas )?niet\b",
        r"|als (?:ai|taalmodel)\b",
    ),
    _row(
        OpeningKind.CHATTER, "Dutch",
        r"(?:natuurlijk|zeker|prima|goed|graag|begrepen)\s?[,.!:]|hier (?:is|volgt|komt)\b.{0,20}\b(?:rest|vervolg)",
        r"|(?:ik ga verder|verder waar)\b",
    ),
    _row(
        OpeningKind.REFUSAL, "Russian",
        r"(?:к сожалению|извините|простите)\b|я не могу\b",
        r"|как (?:ии|языковая|искусственный)\b",
    ),
    _row(
        OpeningKind.CHATTER, "Russian",
        r"(?:конечно|хорошо|разумеется|понятно)\s?[,.!:]",
        r"|вот (?:продолжение|осталь)|продолж(?:аю|у|ение)\b",
    ),
    _row(OpeningKind.RESTART, "Chinese", r"(?:让我|我(?:会|将|来)?)从头|让我重新|重新开始|以下是完整"),
    _row(
        OpeningKind.REFUSAL, "Chinese",
        r"(?:很|非常|十分)?(?:抱歉|对不起|遗憾)|我(?:无法|不能|没有)|作为(?:一个|一款)?(?:ai|人工|语言)",
    ),
    _row(
        OpeningKind.CHATTER, "Chinese",
        r"(?:好的?|当然|没问题|明白了?|可以)[，。！,.!、：]|以下(?:是|为)|(?:我)?(?:继续|接着|接上文)",
    ),
    _row(
        OpeningKind.REFUSAL, "Japanese",
        r"(?:大変)?(?:申し訳|すみません|ごめん)|残念な|aiとして",
    ),
    _row(
        OpeningKind.CHATTER, "Japanese",
        r"(?:はい|もちろん|承知|わかりました|了解)[、。！!,]?|(?:以下|こちら)[がはに]|続き",
    ),
    _row(OpeningKind.REFUSAL, "Korean", r"죄송|미안|안타깝|유감|(?:저는 )?ai로서"),
    _row(OpeningKind.CHATTER, "Korean", r"(?:네|물론|알겠습니다)[,.!이]|(?:다음은|이어서|계속)"),
)
"""The rows in the order in which they are tried, RESTART before CHATTER in each language: "Sure, let me start over"
announces a restart."""

OPENING_CHARS = 200
"""The number of characters at a segment's beginning within which chatter must end and the requested quotation begin."""

FOLDS: Mapping[str, str] = {
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u02bc": "'", "\u2032": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"', "\u2033": '"',
}
"""Typographic quotation mark -> the plain one. Models that quote replace either by the other, so both sides of a
comparison are folded; the answer itself keeps its marks."""

_MARKUP = "*_#>~`\"'([{- \t\r\n"


def find_opening(text: str) -> Opening | None:
    """The first row of `OPENINGS` that matches the beginning of a text, without markup before it; None if none does."""
    # Only the beginning is folded: a segment may hold megabytes, and no pattern looks further. Markup goes first, since
    # models set such remarks in bold, in a list or in a quotation.
    folded = " ".join("".join([FOLDS.get(char, char) for char in text[:OPENING_CHARS]]).lower().lstrip(_MARKUP).split())
    return next((row for row in OPENINGS if re.match(row.pattern, folded)), None)


# -- Segments and seams as values: how each text was requested, what arrived, and what a join cut --------------------
# An answer that was cut and continued has one segment for each response. How a seam is decided is in `seam`.


class Method(StrEnum):
    """The way in which a segment was requested."""

    FIRST = "first"
    """The request with which the answer began."""
    PREFILL = "prefill"
    """A request whose last message is the text so far, as the beginning of the answer."""
    HINT = "hint"
    """A message that asks the model to go on."""
    ANCHOR = "anchor"
    """A message that asks the model to go on, and to quote the last words first."""
    AGAIN = "again"
    """A second request for the words to quote, because the segment before did not begin with them."""
    ECHO = "echo"
    """A paused response that is sent back as it was."""
    TOKEN = "token"  # noqa: S105 - a method, not a secret
    """A continuation token that the provider gave."""
    POLL = "poll"
    """A background response that is fetched again."""
    BOOST = "boost"
    """The same request with a larger cap, because nothing visible had come."""
    REPAIR = "repair"
    """A message that asks for a held call again."""
    NUDGE = "nudge"
    """The same request after an answer without any content, with a message that says so."""


class SeamRule(StrEnum):
    """A rule that decides a seam."""

    CAREFUL = "careful"
    """Only a requested quotation, or a repetition too long to be chance, is cut."""
    CONCAT = "concat"
    """The texts are joined as sent, and nothing is cut."""
    OVERLAP = "overlap"
    """The longest overlap is cut, however short. Other loops do this, and it corrupts ordinary text."""


class SeamDecision(StrEnum):
    """The decision at one seam."""

    AS_SENT = "as_sent"
    """The texts were joined byte for byte."""
    ANCHOR = "anchor"
    """The words that were to be quoted were cut."""
    ECHO = "echo"
    """The prefill that the server repeated was cut."""
    WHITESPACE = "whitespace"
    """White space that the prefill lacked was put back, or not doubled; or a cut word that it lacked was dropped."""
    OVERLAP = "overlap"
    """A repetition too long to be chance was cut."""
    RESTART = "restart"
    """The answer began again, or was fetched again, so the repeated or replaced text was left out."""
    UNVERIFIED = "unverified"
    """The requested quotation is missing, a new message was begun, rows that the answer repeats occur again, or the
    continuation may be in quotation marks. The texts are joined as sent, and nothing shows that they fit."""
    LEFT_OUT = "left_out"
    """The segment did not begin with the requested quotation, and the answer to the repeated request, or the segment
    before it, was kept instead."""
    APART = "apart"
    """A blank line separates the text beside a repaired call, because that text continues nothing."""


def split_half(text: str) -> tuple[str, str]:
    """Returns a text without the first half of a surrogate pair at its end, and that half; the next text may begin with
    the other."""
    size = len(text) - ("\ud800" <= text[-1:] <= "\udbff")
    return text[:size], text[size:]


class Segment(NamedTuple):
    """The visible text of one response of an answer."""

    text: str
    method: Method = Method.FIRST
    anchor: str = ""
    """The words that the model was asked to quote (methods anchor and again); empty if none."""
    stripped: str = ""
    """What the end of the prefill lacks: white space, because the provider refuses it there, or in a recorded agent the
    word that was cut (AI SDK 4)."""
    echoes: bool | None = None
    """Whether the server repeats a prefill in its answer; None if unknown."""
    response: int | None = None
    """The index, in the recording or run, of the response that holds the text; None if it has none."""
    mark: str = QUOTE_MARKS[0]
    """The name of the tags around the words to quote."""


class Seam(NamedTuple):
    """The join of two segments: `at` is where the later begins in the text, `cut` what its beginning lost."""

    segment: int
    """The index of the later segment."""
    at: int
    decision: SeamDecision
    cut: str = ""
    why: str = ""
    sure: bool = True
    """Whether the segment is known to continue the text before it. False if nothing shows that."""
    removals: tuple[tuple[int, str], ...] = ()
    """Offset and text of each further part left out of the segment: the end of a wrapper, marks of the prompt."""

    @property
    def left_out(self) -> list[str]:
        """The texts that the segment lost, in order."""
        return [text for text in (self.cut, *(text for _, text in self.removals)) if text]

    def remainder(self, text: str) -> str:
        """The part of the segment that the join keeps."""
        at = len(self.cut)
        pieces: list[str] = []
        for begin, left_out in self.removals:
            pieces.append(text[at:begin])
            at = begin + len(left_out)
        return "".join([*pieces, text[at:]])


class JoinedText(NamedTuple):
    """The merged text with its seams, one for every segment but the first."""

    text: str
    seams: tuple[Seam, ...]

    @property
    def doubtful_seams(self) -> tuple[Seam, ...]:
        """The seams where nothing shows that the two sides fit."""
        return tuple(seam for seam in self.seams if not seam.sure)
