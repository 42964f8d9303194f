"""Detects answers that look finished and are not: nothing visible, only reasoning, a call left in the text, no call at
all, or a text that stops in the middle.

The rows of a table are tried in order on a response whose effective reason says that it ended normally. This module
depends on no wire format: a decoder reports as findings what it could not read, and keeps unknown blocks as opaque
parts.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from loop_core.formats import format_entry
from loop_core.json_parser import from_json
from loop_core.judge.signs import Leak, Sign, find_leak, only_thinks, stops_in_the_middle, stops_short
from loop_core.values import (
    FINISHED,
    At,
    CallKind,
    ChatResponse,
    FactQuote,
    Finding,
    OpaquePart,
    ReasoningPart,
    Request,
    ResponsePart,
    Severity,
    Stop,
    StopReason,
    TextPart,
    ToolCall,
)


class Ending(StrEnum):
    """The reason why an answer that looks finished is not."""

    __hash__ = str.__hash__

    EMPTY_ANSWER = "empty_answer"
    """The answer shows nothing and holds no call, and its word says that the turn ended."""
    REASONING_ONLY = "reasoning_only"
    """The answer holds reasoning and nothing visible."""
    CALL_LEAKED = "call_leaked"
    """The text, or reasoning that nothing visible follows, holds a call written as markup."""
    NO_CALL = "no_call"
    """The word asks for tools, but the answer holds no call."""
    COMMENTARY_ONLY = "commentary_only"
    """All messages only announce what comes next (Responses, phase `commentary`)."""


SILENT = frozenset({Ending.EMPTY_ANSWER, Ending.REASONING_ONLY})
"""The endings that a prompt may have asked for, by ordering an answer without content."""

INVISIBLE = frozenset({
    "message.annotations", "mcp_list_tools", "additional_tools", "fallback", "cachePoint", "citationsContent",
})
"""The types of opaque parts that show nothing by themselves. All others, also unknown ones, count as visible."""
_FIELDS = ".fields"
"""Suffix of the type of a part that only extends the part before it."""
TEXTS = frozenset({"text", "output_text", "content.text"})
"""The types of opaque parts that hold text in a form that is not read. If that text is null or absent, the part shows
nothing."""
OUTPUTS = ("result", "results", "outputs", "output")
"""The members of a provider-run call's JSON that hold its output."""

REPEATED_MEMBER_RULES = frozenset({"frame.repeated_member", "body.repeated_member"})
"""The rules of findings about an object that names a member twice, with two values."""
DAMAGED = "transport.damaged"
UNREAD_RULES = frozenset({"frame.invalid", "frame.shape", "body.shape", DAMAGED})
"""The rules of findings about something that was sent and not read as it was sent. It may have been the answer."""


class EndingCase(NamedTuple):
    """The input of a row: one response whose stop reason says that it finished, and which holds no call to run."""

    response: ChatResponse
    request: Request | None
    stop: StopReason
    visible: bool
    """Whether the response holds anything for its reader."""
    leak: Leak | None
    leak_in: str
    """The fact that holds the leaked call: text or reasoning."""


class EndingSign(NamedTuple):
    """The sign of an ending, in words, and its place: bytes of the body, or characters of a fact."""

    text: str
    at: At | None = None
    quote: FactQuote | None = None


class EndingRow(NamedTuple):
    """One ending, and the function that detects it."""

    ending: Ending
    holds: Callable[[EndingCase], EndingSign | None]


def _markup_call(case: EndingCase) -> EndingSign | None:
    leak = case.leak
    if leak is None:
        return None
    text = f"the {case.leak_in} contains a call of {leak.tool} as markup ({leak.title}); it was not delivered as a call"
    return EndingSign(text, None, FactQuote(case.leak_in, leak.start, leak.end))


def _word(stop: StopReason) -> str:
    """The provider's word, or the mapped reason if the recording holds only the recorder's word."""
    return stop.raw or str(stop.normalized)


def _no_call(case: EndingCase) -> EndingSign | None:
    if case.stop.normalized is not Stop.TOOL_CALL:
        return None
    return EndingSign(f"no call was sent, although the stop reason is {_word(case.stop)!r}", _word_at(case.stop))


def _commentary(case: EndingCase) -> EndingSign | None:
    phases = {part.phase for part in case.response.parts if type(part) is TextPart}  # all that a transcript has
    if case.response.native.get("phase") != "commentary" and phases != {"commentary"}:
        return None
    if any(map(_shows, case.response.parts)):
        return None
    return EndingSign("every message has the phase commentary: it announces what comes next, and nothing came",
                      _word_at(case.stop))


def _reasoning(case: EndingCase) -> EndingSign | None:
    sign = _thinking(case.response)
    if sign is not None and not case.visible:
        return EndingSign(f"all output is reasoning: {sign.text}", None, FactQuote("text", sign.start, sign.end))
    if case.visible or not any(type(part) is ReasoningPart for part in case.response.parts):
        return None
    return EndingSign(f"all output is reasoning; nothing visible came before {_word(case.stop)!r}", _word_at(case.stop))


def _empty(case: EndingCase) -> EndingSign | None:
    if case.visible:
        return None
    return EndingSign(f"nothing visible and no call came before {_word(case.stop)!r}", _word_at(case.stop))


ENDINGS: tuple[EndingRow, ...] = (
    # First, since the text or the reasoning that holds the call would fit other rows as well.
    EndingRow(Ending.CALL_LEAKED, _markup_call),
    EndingRow(Ending.NO_CALL, _no_call),
    EndingRow(Ending.COMMENTARY_ONLY, _commentary),
    EndingRow(Ending.REASONING_ONLY, _reasoning),
    EndingRow(Ending.EMPTY_ANSWER, _empty),
)
"""The rows in the order in which they are tried. The first that finds a sign names the ending."""


def ending_of(
    response: ChatResponse, request: Request | None, stop: StopReason, tools_known: bool
) -> tuple[Ending, EndingSign] | None:
    """The ending of a response that looks finished and is not, and its sign; None if it really is finished, or does not
    look so."""
    if stop.normalized not in FINISHED or has_calls(response):
        return None
    # A stop string may end an answer before its first word, but a tool word over it still lacks its call.
    if stop.normalized is not Stop.TOOL_CALL and hit_stop_string(response):
        return None
    visible = has_content(response)
    tools = None if request is None or not (tools_known or request.tools) else {tool.name for tool in request.tools}
    case = EndingCase(response, request, stop, visible, *_leak(response, tools, visible))
    for row in ENDINGS:
        sign = row.holds(case)
        if sign is not None:
            return row.ending, sign
    return None


def has_calls(response: ChatResponse) -> bool:
    """Whether the response holds a call for the client to run; one without name and arguments does not count."""
    return any(call.name or (call.arguments or "").strip() for call in response.tool_calls)


def is_damaged(text: str) -> bool:
    """Whether a text holds the sign of bytes that were not UTF-8, or half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return "\ufffd" in text


def has_content(response: ChatResponse) -> bool:
    """Whether an answer holds anything for its reader; reasoning and blocks that belong to other parts do not count."""
    # What could not be read may have been the answer, so nothing is called empty then.
    return shows_anything(response) or is_unread(response)


def is_unread(response: ChatResponse) -> bool:
    """Whether something was sent which was not read."""
    return any(found.rule in UNREAD_RULES for found in response.findings)


def shows_anything(response: ChatResponse) -> bool:
    """Whether the part of an answer that was read holds anything for its reader."""
    if response.refusal:
        return True
    # white space alone is nothing visible
    has_text = any(type(part) is TextPart and part.text.strip() for part in response.parts)
    return (has_text and _thinking(response) is None) or any(_shows(part) for part in response.parts)


def _thinking(response: ChatResponse) -> Sign | None:
    return only_thinks(response.text or "")


def _shows(part: ResponsePart) -> bool:
    if type(part) is OpaquePart:
        if part.type in TEXTS:
            return _holds(part.json, ("text",))
        if part.type in INVISIBLE or part.type.endswith(_FIELDS):
            return False
        return '"thought"' not in part.json or not _holds(part.json, ("thought",))  # Gemini's images while it thinks
    if type(part) is ToolCall:
        return part.kind is CallKind.SERVER and brought_output(part)
    return False


def brought_output(call: ToolCall) -> bool:
    """Whether the JSON of a call that the provider ran also holds its output (items of Responses do)."""
    return _holds(call.arguments, OUTPUTS)


def _holds(text: str | None, keys: Iterable[str]) -> bool:
    """Whether the JSON object in `text` has something in one of these members."""
    try:
        value: Any = from_json((text or "").encode())
    except ValueError:
        return False
    return isinstance(value, dict) and any(value.get(key) for key in keys)


def _leak(response: ChatResponse, tools: set[str] | None, visible: bool) -> tuple[Leak | None, str]:
    found = find_leak(response.text or "", tools)
    if found is not None or visible:
        return found, "text"
    return find_leak(response.reasoning_content or "", tools), "reasoning"


def _word_at(stop: StopReason) -> At | None:
    return next((evidence.at for evidence in stop.evidence if evidence.at is not None), None)


# -- what a request set: a context, stop strings -----------------------------------------------------------------------


def num_ctx_of(request: Request | None) -> int | None:
    """The context size in tokens that a request set (`options.num_ctx` of Ollama); None if it set none."""
    options: Any = request.extra.get("options") if request is not None else None
    size = options.get("num_ctx") if hasattr(options, "get") else None
    return size if type(size) is int and size > 0 else None


STOP_FIELDS: tuple[tuple[str, ...], ...] = (
    ("stop",), ("stop_sequences",), ("generationConfig", "stopSequences"),
    ("generation_config", "stop_sequences"), ("options", "stop"),
    ("inferenceConfig", "stopSequences"), ("config", "stopSequences"), ("config", "stop_sequences"),
)
"""The paths under which requests of all formats hold stop strings."""
HITS = ("stop_reason", "matched_stop")
"""The fields in which servers of chat completions name the stop string that was hit (vLLM, SGLang). A number there
names a token and is not a stop string."""


def stop_strings(request: Request | None) -> tuple[str, ...]:
    """The stop strings that a request set."""
    for path in STOP_FIELDS if request is not None else ():
        value: Any = request.extra if request is not None else None
        for key in path:
            value = value.get(key) if hasattr(value, "get") else None
        if isinstance(value, str) and value:
            return (value,)
        if isinstance(value, (list, tuple)) and value:
            return tuple(str(each) for each in value)
    return ()


def hit_stop_string(response: ChatResponse) -> bool:
    """Whether the response says that a stop string ended it; then an empty answer is intended."""
    raw = (response.stop_reason.raw or "").casefold()
    native = (response.native.get("native_finish_reason") or "").casefold()
    detail = response.stop_reason.detail
    # Anthropic's text completions say stop_sequence for their ordinary end too (`own_end`); Titan says
    # STOP_CRITERIA_MET for it, which its table details.
    if "stop_sequence" in (raw, native, detail) and detail != "own_end":
        return True
    words = [response.native.get(name) for name in HITS]
    # the field as JSON: null if none was hit
    return any(word and not word.lstrip("-").isdigit() and word != "null" for word in words)


def stop_string_unknown(response: ChatResponse, request: Request | None) -> bool:
    """Whether the request set stop strings and the response cannot say whether one was hit."""
    if format_entry(response.api).names_stop_strings or not stop_strings(request):
        return False
    return not any((response.native.get(name) or "").lstrip("-").isdigit() for name in HITS)


# -- Answers that used the whole cap ---------------------------------------------------------------------------------


def spent_cap(response: ChatResponse, request: Request | None) -> tuple[int, int] | None:
    """The output tokens and the cap, if the response is known to have used the whole cap; None otherwise."""
    cap, usage = request.max_tokens if request else None, response.usage
    if cap is None or usage is None or usage.output_tokens is None or usage.output_tokens < cap:
        return None
    if response.other_choices or (request is not None and request.n > 1):
        return None  # the usage is the sum over all choices, the cap is for each
    return usage.output_tokens, cap


def maybe_cut_at_cap(response: ChatResponse, request: Request | None) -> bool:
    """Whether a response may be cut: it used all allowed tokens, and shows neither reasoning nor a stop string."""
    return spent_cap(response, request) is not None and not (has_reasoning(response) or hit_stop_string(response))


def despite(stop: StopReason) -> str:
    """The end of a note about a cut that the stop reason does not tell of; a recorder's own word is no reason."""
    return f"though the reason is {stop.raw!r}" if stop.raw else "without a stop reason of the provider"


def cut_at_cap(response: ChatResponse, request: Request | None) -> Sign | None:
    """The sign that a text which used all allowed tokens stops in the middle; None if there is none. A stop string may
    end a text anywhere, so if one may have been hit, the result is None."""
    if spent_cap(response, request) is None or has_reasoning(response) or has_calls(response):
        return None
    if hit_stop_string(response) or stop_string_unknown(response, request):
        return None
    return stops_in_the_middle(response.text or "")


# -- Answers below the cap whose text stops in the middle ------------------------------------------------------------


UNFINISHED_TEXT = "ending.unfinished_text"
"""The rule of the finding that a text stops in the middle under a clean word. It is a guess, so the reason stays."""


def unfinished_text(response: ChatResponse, request: Request | None, stop: StopReason) -> Finding | None:
    """Returns the finding that the text of an answer stops in the middle although its word says that it ended. None
    without a sign, without a recorded word, or if something else may have ended the text: a stop string, a call, a part
    after the text, or the text that the request wants to follow (`suffix`)."""
    if stop.normalized is not Stop.END_TURN or not _has_word(response.stop_reason) or has_calls(response):
        return None
    # If the request is unknown, a word that also stands for a stop string does not tell what ended the text.
    unseen = request is None and not format_entry(response.api).names_stop_strings
    if unseen or hit_stop_string(response) or stop_string_unknown(response, request):
        return None
    if request is not None and request.extra.get("suffix"):  # the answer is meant to end where the suffix begins
        return None
    parts = (part for part in reversed(response.parts) if type(part) is not OpaquePart or _shows(part))
    sign = stops_short(response.text or "") if type(next(parts, None)) is TextPart else None
    return sign and Finding(
        UNFINISHED_TEXT, Severity.WARNING, f"the text stops in the middle ({sign.text}); it is a guess that it was cut",
        None, FactQuote("text", sign.start, sign.end))


WORD_RULES = (".stop_reasons", ".finish_reasons", ".finish_details", ".extra")
"""Suffixes of the rules that map a stop word of the provider or of a recorder."""


def _has_word(stop: StopReason) -> bool:
    """Whether the provider or a recorder wrote a stop word. If not, the reason was inferred."""
    return bool(stop.raw) or any(evidence.rule.endswith(WORD_RULES) for evidence in stop.evidence)


def has_reasoning(response: ChatResponse) -> bool:
    """Whether reasoning was seen or reported."""
    reported = response.usage is not None and bool(response.usage.reasoning_tokens)
    return reported or any(type(part) is ReasoningPart for part in response.parts)


def remarks(response: ChatResponse, stop: StopReason) -> list[Finding]:
    """Findings that do not change the reason: an unknown word, a budget spent on reasoning."""
    found: list[Finding] = []
    word, usage = response.stop_reason, response.usage
    # Gemini's OTHER is in its table.
    is_in_table = any(evidence.rule.endswith(".stop_reasons") for evidence in word.evidence)
    if word.normalized is Stop.UNKNOWN and word.raw and word.detail is None and not is_in_table:
        at = word.evidence[0].at if word.evidence else None
        found.append(Finding("stop.unknown_word", Severity.WARNING,
                             f"{word.raw!r} is not a known stop reason of {response.api}", at))
    if stop.normalized is Stop.MAX_TOKENS and usage and usage.reasoning_tokens and usage.output_tokens:
        left = usage.visible_tokens
        if left is not None and usage.reasoning_tokens * 2 >= usage.output_tokens:
            found.append(Finding("usage.reasoning", Severity.WARNING,
                                 f"thinking took {usage.reasoning_tokens:,} of {usage.output_tokens:,} output tokens; "
                                 f"the answer and its calls took {left:,}"))
    return found
