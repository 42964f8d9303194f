"""The table of dialects: how each known server reports a cut answer, with the source.

The table has a row for each server and habit. A row without its own words uses those of its format. `blind` names the
cases in which even our judge takes a cut answer for a finished one, and why the bytes do not show the cut. The second
table has the words by which four libraries read the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from inspector.provider import frames
from inspector.provider.frames import Quirk
from loop_core.errors import CallerError
from loop_core.formats import FORMATS
from loop_core.values import FINISHED, ProviderError, Stop
from loop_core.wire import wire
from loop_core.wire.servers import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES
from loop_core.wire.serving import (
    PEER_ABSENT,
    PEER_FAILURE,
    CutCallForm,
    Moment,
    PeerWords,
    Says,
    Spelling,
    budget_words,
    fails,
    say,
)

ENDED, CALLED, CUT, CUT_CALL = Moment.ENDED, Moment.CALLED, Moment.CUT, Moment.CUT_CALL
CUT_BATCH, CUT_AFTER, FULL, FILTERED = Moment.CUT_BATCH, Moment.CUT_AFTER, Moment.FULL, Moment.FILTERED
PAUSED, MALFORMED, FAILED, BROKEN = Moment.PAUSED, Moment.MALFORMED, Moment.FAILED, Moment.BROKEN


@dataclass(frozen=True, slots=True)
class Dialect:
    """One server, and one of its habits."""

    api: str
    profile: str
    habit: str = ""
    """The name of the habit, which distinguishes the rows of one server; empty for the usual behaviour."""
    title: str = ""
    """The difference between the dialect and its format, in words."""
    source: str = ""
    says: Says = field(default_factory=dict)
    """Way in which an answer ends -> its spelling, if it differs from that of the format."""
    call_form: CutCallForm | None = None
    """The part of a cut call that the server sends, if it differs from that of the format."""
    stream: bool = True
    quirks: tuple[Quirk, ...] = ()
    free_thinking: bool = False
    """Whether thinking does not count under the cap."""
    model: str = "model-1"
    asks: Mapping[str, object] = field(default_factory=dict)
    """Further members that a request must have to get this behaviour, besides the prompt, the tools and the budget."""
    blind: Mapping[Moment, str] = field(default_factory=dict)
    """Way in which an answer ends -> why its bytes are the same as those of a finished answer."""

    @property
    def name(self) -> str:
        """`api/profile`, and `+habit` if there is one."""
        return f"{self.api}/{self.profile}" + (f"+{self.habit}" if self.habit else "")

    def carries(self, moment: Moment) -> CutCallForm:
        """The part of a call that is sent if the answer ends inside the call in this way. A malformed call is sent
        unchanged. If the stream breaks, no parser of the server changes the cut call."""
        spelling = self.spelling(moment)
        if spelling is not None and spelling.call_form is not None:
            return spelling.call_form
        if moment is Moment.MALFORMED:
            return CutCallForm.PREFIX
        own = self.call_form if moment is not Moment.BROKEN or self.call_form is CutCallForm.DROPPED else None
        return own or wire(self.api).serving.call_form

    def spelling(self, moment: Moment) -> Spelling | None:
        """The words and fields that are sent if an answer ends in this way; None if the dialect cannot express that. A
        whole body has no spelling for a broken or failed stream, because it would not be sent at all. A cut batch is
        spelled like a cut single call."""
        names = (moment, Moment.CUT_CALL) if moment is Moment.CUT_BATCH else (moment,)
        own_name = next((name for name in names if name in self.says), None)
        if own_name is not None:
            return self.says[own_name]
        if not self.stream and moment in (Moment.FAILED, Moment.BROKEN):
            return None
        usual = wire(self.api).serving.says
        return next((usual[name] for name in names if name in usual), None)


_AT_CAP = "only the token count equals the cap, and a text that does not visibly stop in the middle may be whole"
_CALLS_AT_CAP = ("only the token count equals the cap, and whether thinking counts under it is not known here; what "
                 "came of the calls is complete")
OTHERS: tuple[Dialect, ...] = (
    # -- Chat Completions ----------------------------------------------------------------------------------------
    Dialect(CHAT, "openai", "named", "reports stop for complete calls where tool_choice names the function",
            "vLLM PR#25054", {CALLED: say("stop")}, model="gpt-4o-mini",
            asks={"tool_choice": {"type": "function", "function": {"name": "write_file"}}}),
    Dialect(CHAT, "mimo", title="sends no finish reason at the cap: the last chunk has choices []",
            source="Zoo Code's analysis; Zoo-Code#425", model="mimo-v2.5-pro",
            says={moment: say(None) for moment in (CUT, CUT_CALL, CUT_AFTER)}),
    Dialect(CHAT, "vllm", title="its call parser says tool_calls, whatever ended the call",
            source="vLLM #53269, #9053, #58228",
            says={CUT_CALL: say("tool_calls"), CUT_AFTER: say("tool_calls"),
                  FAILED: fails("error", "The engine failed.", "InternalServerError")}),
    Dialect(CHAT, "vllm", "empty", "turns a cut call into the arguments {}", "vLLM PR#46303",
            {CUT_CALL: say("tool_calls")}, CutCallForm.EMPTY_OBJECT),
    Dialect(CHAT, "vllm", "markup", "leaves the markup of a cut call in the text of a whole answer", "vLLM #47903",
            call_form=CutCallForm.MARKUP, stream=False),
    Dialect(CHAT, "openrouter", title="rewrites the reason; the native one stands beside it",
            source="recorded; hermes-agent PR#7693; openrouter 1.3.84 generationresponse.py:78",
            says={CUT: Spelling("stop", {"native_finish_reason": "MAX_TOKENS"}),
                  CUT_CALL: Spelling("tool_calls", {"native_finish_reason": "length"}),
                  CUT_AFTER: Spelling("length", {"native_finish_reason": "length"}),
                  FAILED: fails("error", "Provider returned error", code="502")}),
    Dialect(CHAT, "generic", "router", "a router that reports tool_calls for a cut call, and nothing else",
            "hermes-agent PR#7693", {CUT_CALL: say("tool_calls")}),
    Dialect(CHAT, "litellm", title="puts tool_calls in the place of Gemini's MAX_TOKENS where any call came",
            source="LiteLLM 1.109.1",
            says={CUT_BATCH: say("tool_calls"), CUT_AFTER: say("tool_calls"), PAUSED: say("length"),
                  MALFORMED: say("stop", CutCallForm.DROPPED), FAILED: say("stop")}, call_form=CutCallForm.DROPPED,
            blind={CUT_BATCH: _CALLS_AT_CAP, CUT_AFTER: _CALLS_AT_CAP,
                   MALFORMED: "an unknown native word becomes stop, and the call is gone",
                   FAILED: "an error word becomes stop"}),
    Dialect(CHAT, "dynamo", title="tool_calls over a cut call, and one index for all calls, in older versions",
            source="ai-dynamo PR#13791, PR#4723", says={CUT_CALL: say("tool_calls")}, quirks=(frames.one_index,)),
    Dialect(CHAT, "generic", "leak", "gives back a call's unclosed markup as text, and says stop", "omlx#3153",
            {CUT_CALL: say("stop")}, CutCallForm.MARKUP,
            blind={CUT_BATCH: "the cut call is text, which a complete call before it makes look like a remark"}),
    Dialect(CHAT, "generic", "alias", "has another word: MAX_TOKENS", "ironclaw PR#5665; agentao PR#125",
            budget_words("MAX_TOKENS", full="MAX_TOKENS")),
    Dialect(CHAT, "llama_cpp", title="says length for a full context too, with truncated: true beside it",
            source="llama.cpp PR#28711", says={FULL: Spelling("length", {"truncated": "true"})}),
    Dialect(CHAT, "lm_studio", title="no finish reason where the context is full; another id in every piece of a call",
            source="vaadin/flow-components b88af58; LM Studio#830", says={FULL: say(None)},
            quirks=(frames.fresh_ids,)),
    Dialect(CHAT, "ollama", title="drops a cut call; reports stop for calls, all of index 0",
            source="ollama#15457; opencode#14972; wire notes", says={CALLED: say("stop"), MALFORMED: None},
            call_form=CutCallForm.DROPPED, quirks=(frames.one_index,)),
    Dialect(CHAT, "gemini", title="drops a cut call; reports stop for calls, which have no index",
            source="openai-python#2806; opencode#14972; wire notes", says={CALLED: say("stop"), MALFORMED: None},
            call_form=CutCallForm.DROPPED, quirks=(frames.no_index,), model="gemini-2.5-flash"),
    Dialect(CHAT, "azure_openai", title="begins with choices [], what its filter says of the prompt",
            source="openai-python#1677; langchain#18977", quirks=(frames.prompt_annotations,),
            says={FILTERED: Spelling("content_filter", {"content_filter_results": "violence"})}, model="gpt-4o-mini"),
    Dialect(CHAT, "github_copilot", title="text and calls come in two choices of a whole body",
            source="zeroclaw PR#2136", stream=False, quirks=(frames.split_choices,)),
    Dialect(CHAT, "groq", title="a call that its parser cannot read becomes an HTTP 400", source="Groq error codes",
            says={MALFORMED: Spelling(
                None, {"failed_generation": "<function=write_file>{path: report.md}</function>"},
                ProviderError("Failed to call a function.", "invalid_request_error", "tool_use_failed"), 400)}),
    Dialect(CHAT, "mistral", title="complete arguments may be an object; model_length in whole bodies only",
            source="mistralai 3.7.0 functioncall.py, chatcompletionchoice.py:23", stream=False,
            quirks=(frames.object_arguments,), says={FULL: say("model_length"), FAILED: say("error")}),
    Dialect(CHAT, "deepseek", title="says by a word of its own that it ran out of resources",
            source="@ai-sdk/deepseek 3.0.56", says={FAILED: say("insufficient_system_resource")}),
    Dialect(CHAT, "zai", title="has words of its own", source="pydantic-ai 2.68.0 models/zai.py:35",
            says={FULL: say("model_context_window_exceeded"), FILTERED: say("sensitive"),
                  FAILED: say("network_error")}),
    Dialect(CHAT, "xai", title="thinking counts neither under the cap nor in completion_tokens",
            source="recorded: 113 tokens, 110 of them thinking, under a cap of 16", free_thinking=True,
            quirks=(frames.thinking_apart,)),
    Dialect(CHAT, "together", title="ends a turn with eos",
            source="together 3.1.1 types/chat/chat_completion.py:17", says={ENDED: say("eos")}),
    Dialect(CHAT, "fireworks", title="says error under HTTP 200",
            source="fireworks-ai 1.2.30 types/shared/choice.py:25", says={FAILED: say("error")}),
    Dialect(CHAT, "moonshot", title="usage stands inside the choice", source="pi-ai openai-completions.js",
            quirks=(frames.usage_in_choice,)),
    Dialect(CHAT, "cerebras", title="the later pieces of a call have another index and no id", source="dirac PR#215",
            quirks=(frames.wandering_index,)),
    Dialect(CHAT, "oci", title="every piece of a call has another id, and an empty name", source="litellm PR#40040",
            quirks=(frames.fresh_ids,)),
    Dialect(CHAT, "sglang", title="calls have no index", source="wire notes", quirks=(frames.no_index,)),
    Dialect(CHAT, "tgi", title="tool_calls is an object, the id is empty", source="TGI #2794",
            quirks=(frames.one_object,)),
    # -- Responses -----------------------------------------------------------------------------------------------
    Dialect(RESPONSES, "llama_cpp", title="reports completed for a cut at max_output_tokens",
            source="seen with SmolLM2, two builds", says=budget_words("completed")),
    Dialect(RESPONSES, "generic", "completed", "says completed for every cut", "omlx PR#2817",
            budget_words("completed", full="completed"),
            blind={CUT: _AT_CAP, CUT_AFTER: _CALLS_AT_CAP, FULL: "completed, and the count is below the cap"}),
    Dialect(RESPONSES, "generic", "bare", "says incomplete, and not why", "hermes-agent #91770",
            {**budget_words("incomplete", full="incomplete"), FILTERED: say("incomplete")}),
    # -- Messages ------------------------------------------------------------------------------------------------
    Dialect(MESSAGES, "anthropic", "open", "never ends the block of a cut call", "zeroclaw cfee31c613",
            call_form=CutCallForm.OPEN, model="claude-sonnet-4-5"),
    # -- Gemini --------------------------------------------------------------------------------------------------
    Dialect(GEMINI, "gemini", "malformed", "a cut call becomes MALFORMED_FUNCTION_CALL, and is not sent", "wire notes",
            {CUT_CALL: say("MALFORMED_FUNCTION_CALL")}, model="gemini-2.5-flash"),
    Dialect(GEMINI, "vertex", title="streams arguments value by value; the last one of a cut call stays open",
            source="google-genai 3.4.0 types.py:2065 willContinue", quirks=(frames.partial_values,),
            model="gemini-2.5-flash",
            asks={"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}}),
    # -- Ollama --------------------------------------------------------------------------------------------------
    Dialect(OLLAMA, "ollama", "markup", "the markup of a cut call stays in the text", "wire notes",
            call_form=CutCallForm.MARKUP, model="qwen3:8b"),
)
"""The servers that differ from their format's own server, and further habits of the formats' own servers."""


def _rows(api: str) -> Iterator[Dialect]:
    """The rows of a format: its own server, what its whole bodies do to a cut call, and the other servers."""
    own = wire(api).serving.own
    yield Dialect(api, own.profile, title=own.title, source=own.source, model=own.model)
    yield from (row for row in OTHERS if row.api == api)
    if own.whole:
        yield Dialect(api, own.profile, "whole", "a cut call in a whole body is an object of what was complete",
                      own.whole, {MALFORMED: None}, CutCallForm.MEMBERS, stream=False, model=own.model)


DIALECTS: tuple[Dialect, ...] = tuple(row for api in FORMATS for row in _rows(api))
"""Every dialect. The first one of each format is the format's own server."""


def has_dialect(profile: str | None) -> bool:
    """Whether there are rows for this server; for any other, the scripted provider uses the rows of the format's own.
    """
    return any(dialect.profile == profile for dialect in DIALECTS)


def dialects_named(only: tuple[str, ...]) -> tuple[Dialect, ...]:
    """The dialects that match any of these words: an API, a profile, `api/profile` or the name with or without its
    API; all dialects without words. Raises `CallerError` if a word names no dialect."""
    for word in only:
        if not any(_matches(dialect, word) for dialect in DIALECTS):
            raise CallerError(f"no dialect is called {word!r}; `inspector providers --list` shows them")
    return tuple(d for d in DIALECTS if not only or any(_matches(d, word) for word in only))


def _matches(dialect: Dialect, word: str) -> bool:
    own = dialect.name.partition("/")[2]
    return word in (dialect.api, dialect.profile, f"{dialect.api}/{dialect.profile}", own, dialect.name)


# -- How four libraries read the same words: LiteLLM, Vercel's AI SDK, pydantic-ai and pi-ai -------------------------
# Native word -> the word of each library. A profile's own row precedes its format's. The words were read in the
# libraries' sources at the named versions; a pair has the words without calls and with calls.


PEERS = ("litellm", "vercel", "pydantic_ai", "pi_ai")
PEER_VERSIONS: Mapping[str, str] = {
    "litellm": "LiteLLM 1.109.1", "vercel": "ai 7.0.173", "pydantic_ai": "pydantic-ai 2.68.0", "pi_ai": "pi-ai 1.5.2",
}

PEER_MEANINGS: Mapping[str, Stop] = {
    "stop": Stop.END_TURN,
    "length": Stop.MAX_TOKENS,
    "tool_calls": Stop.TOOL_CALL,
    "tool-calls": Stop.TOOL_CALL,
    "tool_call": Stop.TOOL_CALL,
    "toolUse": Stop.TOOL_CALL,
    "content_filter": Stop.SAFETY_BLOCKED,
    "content-filter": Stop.SAFETY_BLOCKED,
    "error": Stop.ERROR,
    "raises": Stop.ERROR,
    "other": Stop.UNKNOWN,
    "none": Stop.UNKNOWN,
    "interrupted": Stop.INTERRUPTED,
    "suspended": Stop.PAUSED,
}
"""Stop word of a library -> the normalized word. `raises` means an exception, `none` no reason."""

PEER_WORDS: Mapping[tuple[str, str], PeerWords] = {
    ("mistral", "model_length"): ("stop", "length", "length", "length"),
    ("mistral", "error"): ("stop", "error", "error", "error"),
    ("deepseek", "insufficient_system_resource"): ("stop", "error", "none", "error"),
    ("zai", "sensitive"): ("content_filter", "other", "content_filter", "error"),
    ("zai", "model_context_window_exceeded"): ("length", "other", "length", "error"),
    ("zai", "network_error"): ("stop", "other", "error", "error"),
    ("together", "eos"): ("stop", "other", "none", "error"),
    ("fireworks", "error"): ("stop", "other", "none", "error"),
    ("vllm", "error"): ("stop", "other", "none", "error"),
    ("openrouter", "error"): ("stop", "error", "error", "error"),
}
"""Profile and native word -> the word of each library. Those of a whole format are in `Serving.peers`."""


class Peer(NamedTuple):
    """How one library reads a stop word."""

    name: str
    word: str
    means: Stop
    agrees: bool
    """Whether the library's word means the same as our effective reason."""
    looser: bool
    """Whether only the library takes the answer for finished, so that a loop may run a cut call."""


def peers(api: str, profile: str, raw: str | None, failed: bool, calls: bool, ours: Stop) -> tuple[Peer, ...]:
    """How each library reads a native word, compared with our effective reason; empty if unknown."""
    key = PEER_FAILURE if failed and raw is None else raw or PEER_ABSENT  # if there is a word, libraries read the word
    answers = PEER_WORDS.get((profile, key)) or wire(api).serving.peers.get(key, ())
    found: list[Peer] = []
    for name, answer in zip(PEERS, answers, strict=False):
        # A pair has the words without and with calls; the bool is the index.
        word = answer if isinstance(answer, str) else answer[calls]
        if word:
            means = PEER_MEANINGS[word]
            found.append(Peer(name, word, means, means is ours, means in FINISHED and ours not in FINISHED))
    return tuple(found)
