"""What goes wrong on the way, in every format that can say it: the turn is finished rightly, or says that it is not.

Each hazard is a script of a server and what a careful loop makes of it: how the turn ends, what its answer says, which
calls ran, and how many requests that took. Two things hold for all: no call runs that was not received whole, and
`completed` means that the answer is all there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from loop_core.client.address import Server
from loop_core.client.outgoing import ability
from loop_core.client.transport import Live
from loop_core.turn.limits import Limits
from loop_core.turn.loop import Plan, run
from loop_core.turn.state import Turn
from loop_core.turn.tools import Toolbox
from loop_core.values import (
    ChatResponse,
    ReasoningPart,
    Stop,
    StopReason,
    TextPart,
    Tool,
    ToolCall,
    Usage,
)
from loop_core.wire import wire
from loop_core.wire.profiles import PROFILES
from tests.scenes.live import KINDS, QUICK, WORDS, EventLog, holds, request
from tests.scenes.loopback import Answer, Fake, Peer
from tests.scenes.provider import CALLING

WRITE = Tool("write", {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
                       "required": ["path", "text"]})
LOOK = Tool("look", {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]})
CHAT, RESPONSES, MESSAGES, GEMINI, CONVERSE, OLLAMA, INTERACTIONS, INVOKE, COHERE = CALLING
TEXTUAL = (CHAT, RESPONSES, MESSAGES, CONVERSE, INTERACTIONS, INVOKE, COHERE)
"""Formats whose arguments are text, so that a cut in the middle of a call can be said."""
TOOL_WORD = (CHAT, MESSAGES, CONVERSE, INTERACTIONS, INVOKE, COHERE)
Play = Callable[[str], Answer]


def write(path: str, text: str = "x", number: int = 1) -> ToolCall:
    return ToolCall(f"call_{number}", "write", f'{{"path": "{path}", "text": "{text}"}}', True)


def cut(path: str, number: int = 1) -> ToolCall:
    return ToolCall(f"call_{number}", "write", f'{{"path": "{path}", "text": "it was a dar', False)


def encode_answer(api: str, stop: Stop, *parts: Any, stream: bool = True, usage: int | None = None) -> list[bytes]:
    end, length, called = WORDS[api]
    word = {Stop.END_TURN: end, Stop.MAX_TOKENS: length, Stop.TOOL_CALL: called}[stop]
    made = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    if api == CHAT:  # the stop reason closes its calls, cut or not
        made = tuple(part._replace(closed=True) if isinstance(part, ToolCall) else part for part in made)
    if api in (GEMINI, OLLAMA):
        made = tuple(part._replace(id=None) if isinstance(part, ToolCall) else part for part in made)
    ident = None if api in (GEMINI, CONVERSE, OLLAMA) else "resp_1"
    told = None if usage is None else Usage(10, usage)
    return list(wire(api).encode(ChatResponse(api, made, StopReason(stop, word), told, id=ident,
                                              model=None if ident is None else "m"), stream=stream))


def says(stop: Stop, *parts: Any) -> Play:
    """A whole answer."""
    def play(api: str) -> Answer:
        def answer(peer: Peer) -> None:
            peer.head(kind=KINDS.get(api, "text/event-stream"))
            peer.send(b"".join(encode_answer(api, stop, *parts)))
        return answer
    return play


def breaks(stop: Stop, *parts: Any, keep: str | None) -> Play:
    """An answer whose stream ends behind the piece that holds `keep`; None: before anything of it is there."""
    def play(api: str) -> Answer:
        pieces = encode_answer(api, stop, *parts)
        last = -1 if keep is None else next(at for at, piece in enumerate(pieces) if holds(api, piece, keep))

        def answer(peer: Peer) -> None:
            peer.head(kind=KINDS.get(api, "text/event-stream"))
            peer.send(b"".join(pieces[: last + 1]))
        return answer
    return play


def half(stop: Stop, *parts: Any) -> Play:
    """Half of a whole body."""
    def play(api: str) -> Answer:
        body = b"".join(encode_answer(api, stop, *parts, stream=False))

        def answer(peer: Peer) -> None:
            peer.head(kind="application/json")
            peer.send(body[: len(body) // 2])
        return answer
    return play


def status(code: int, message: str, kind: str = "invalid_request_error") -> Play:
    return lambda api: lambda peer: peer.whole(code, {"error": {"message": message, "type": kind}}, retry_after="0")


def raw(body: bytes) -> Play:
    def answer(peer: Peer) -> None:
        peer.head()
        peer.send(body)
    return lambda api: answer


@dataclass(frozen=True)
class Hazard:
    name: str
    script: Sequence[Play]
    terminal: str
    text: str | None
    """Of the last answer; None: none that is worth a word."""
    ran: Sequence[str] = ()
    """The paths that were written, in order."""
    requests: int = 0
    """0: as many as the script has."""
    apis: Sequence[str] = tuple(CALLING)
    limits: dict[str, Any] = field(default_factory=dict)
    profile: str = "generic"
    stream: bool = True
    extra: dict[str, Any] = field(default_factory=dict)
    notice: str = ""


END, CUT, CALL = Stop.END_TURN, Stop.MAX_TOKENS, Stop.TOOL_CALL
STORY = "Once upon a time there was a fox who lived in the hills near the sea."
FIRST, REST = STORY[:48], STORY[48:]
DONE = says(END, "All is written.")
THOUGHT = ReasoningPart("Let me see.")
OVERLOADED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
CHAT_ERROR = b'data: {"error":{"message":"overloaded","type":"overloaded_error","code":503}}\n\n'
BEGUN = (b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
         b'"model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}\n\n')
SEARCH = (b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":'
          b'"server_tool_use","id":"s1","name":"web_search","input":{}}}\n\n')
MIMO = (b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":'
        b'{"name":"write","arguments":"{\\"path\\": \\"a\\", \\"te"}}]}}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"entropy"}]}\n\ndata: [DONE]\n\n')
LEAK = '<tool_call>\n{"name": "write", "arguments": {"path": "a", "text": "x"}}\n</tool_call>'

HAZARDS = (
    Hazard("nothing goes wrong", [says(END, STORY)], "completed", STORY),
    Hazard("text is cut once", [says(CUT, FIRST), says(END, FIRST[-40:] + REST)], "completed", STORY),
    Hazard("text is cut twice", [says(CUT, STORY[:45]), says(CUT, STORY[5:58]), says(END, STORY[18:])],
           "completed", STORY),
    Hazard("text is cut for ever", [says(CUT, FIRST), *[says(CUT, FIRST[-40:] + f" and {n}") for n in range(3)]],
           "retry_limit", None),
    Hazard("thinking takes the budget", [says(CUT, THOUGHT), says(END, STORY)], "completed", STORY,
           apis=(CHAT, MESSAGES)),
    Hazard("thinking takes it again", [says(CUT, THOUGHT), says(CUT, THOUGHT)], "no_progress", None,
           apis=(CHAT, MESSAGES)),
    Hazard("a call is cut", [says(CUT, cut("a")), says(CALL, write("a")), DONE], "completed", "All is written.", ["a"],
           apis=TEXTUAL),
    Hazard("a call is cut again", [says(CUT, cut("a")), says(CUT, cut("a"))], "repair_failed", None, apis=TEXTUAL,
           notice="write"),
    Hazard("a router says tool_calls over a cut call", [says(CALL, cut("a")._replace(closed=True)),
                                                        says(CALL, write("a")), DONE],
           "completed", "All is written.", ["a"], apis=(CHAT,)),
    Hazard("an unknown word over a cut call", [raw(MIMO), says(CALL, write("a")), DONE], "completed", "All is written.",
           ["a"], apis=(CHAT,)),
    Hazard("a batch is cut and comes again", [says(CUT, write("a"), cut("b", 2)),
                                              says(CALL, write("a"), write("b", number=2)), DONE],
           "completed", "All is written.", ["a", "b"], apis=TEXTUAL),
    Hazard("half of a batch comes again", [says(CUT, write("a"), cut("b", 2)), says(CALL, write("b")), DONE],
           "repair_failed", None, ["b"], apis=TEXTUAL, notice='write (path "a", text "x")'),
    Hazard("the other half is asked for as well", [says(CUT, write("a"), cut("b", 2)), says(CALL, write("b")),
                                                   DONE, says(CALL, write("a", number=3)), DONE],
           "completed", "All is written.", ["b", "a"], apis=TEXTUAL, limits={"continuation_tool_repair_attempts": 2}),
    Hazard("half comes at once and half later", [says(CUT, write("a"), cut("b", 2)), says(CALL, write("b")),
                                                 says(CALL, write("a", number=3)), DONE],
           "completed", "All is written.", ["b", "a"], apis=TEXTUAL),
    Hazard("a batch is repaired by prose", [says(CUT, write("a"), cut("b", 2)), says(END, "I wrote both.")],
           "repair_failed", None, apis=TEXTUAL, notice="write"),
    Hazard("a larger cap is refused", [says(CUT, cut("a")), status(400, "max_tokens: 200 > 100, the maximum"),
                                       says(CALL, write("a")), DONE],
           "completed", "All is written.", ["a"], apis=TEXTUAL),
    Hazard("a forced call is refused", [says(CUT, cut("a")), status(400, "thinking and a forced tool choice"),
                                        says(CALL, write("a")), DONE],
           "completed", "All is written.", ["a"], apis=TEXTUAL),
    Hazard("a repair is refused for another reason", [says(CUT, cut("a")), status(400, "no such model")],
           "error", None, apis=TEXTUAL),
    Hazard("a prefill is refused", [says(CUT, FIRST), status(400, "assistant message prefill is not supported"),
                                    says(END, FIRST[-40:] + REST)],
           "completed", STORY, apis=(CHAT,), profile="vllm"),
    Hazard("the answer is empty once", [says(END), says(END, STORY)], "completed", STORY),
    Hazard("the answer is empty twice", [says(END), says(END)], "no_answer", None,
           notice="neither text nor a tool call"),
    Hazard("the answer is all reasoning once", [says(END, THOUGHT), says(END, STORY)], "completed", STORY,
           apis=(CHAT, MESSAGES, OLLAMA)),
    Hazard("the answer is all reasoning twice", [says(END, THOUGHT), says(END, THOUGHT)], "no_answer", None,
           apis=(CHAT, MESSAGES, OLLAMA), notice="reasoning"),
    Hazard("no retries are wanted", [says(END)], "no_answer", None, limits={"max_empty_retries": 0}),
    Hazard("the answer after a tool is empty", [says(CALL, write("a")), says(END), DONE], "completed",
           "All is written.", ["a"]),
    Hazard("a call comes after an empty answer", [says(END), says(CALL, write("a")), DONE], "completed",
           "All is written.", ["a"]),
    Hazard("the rest of a cut text is empty", [says(CUT, FIRST), says(END), says(END, FIRST[-40:] + REST)],
           "completed", STORY),
    Hazard("the rest of a cut text never comes", [says(CUT, FIRST), says(END), says(END)], "no_answer", FIRST),
    Hazard("a call leaks into the text", [says(END, LEAK)], "no_answer", None, notice="markup"),
    Hazard("a tool word without a call", [says(CALL, "I shall write.")], "no_answer", None, apis=TOOL_WORD),
    Hazard("the stream breaks before anything", [breaks(END, STORY, keep=None), says(END, STORY)], "completed", STORY),
    Hazard("the stream breaks in a call", [breaks(CALL, write("abc"), keep="abc"), says(CALL, write("abc")), DONE],
           "completed", "All is written.", ["abc"], apis=TEXTUAL),
    Hazard("the stream breaks for ever", [breaks(END, STORY, keep=None)] * 3, "interrupted", None),
    Hazard("the stream breaks in the text", [breaks(END, STORY, "", keep="Once")], "interrupted", None),
    Hazard("a whole body breaks", [half(END, STORY), lambda api: whole(api, END, STORY)], "completed", STORY,
           apis=(CHAT, RESPONSES, MESSAGES, GEMINI, CONVERSE), stream=False),
    Hazard("an overload in place of an answer", [raw(CHAT_ERROR), says(END, STORY)], "completed", STORY, apis=(CHAT,)),
    Hazard("an overload as the first event", [raw(OVERLOADED), says(END, STORY)], "completed", STORY, apis=(MESSAGES,)),
    Hazard("a break after a search began", [raw(BEGUN + SEARCH)], "interrupted", None, apis=(MESSAGES,)),
    Hazard("a break in a stored conversation", [breaks(END, STORY, keep=None)], "interrupted", None, apis=(RESPONSES,),
           extra={"store": True}),
    Hazard("too many requests", [status(429, "slow down", "rate_limit_error"), says(END, STORY)], "completed", STORY),
    Hazard("too many requests for ever", [status(429, "slow down", "rate_limit_error")] * 3, "error", None),
    Hazard("the key is wrong", [status(401, "who are you")], "error", None),
    Hazard("a call is refused by its schema", [
        says(CALL, ToolCall("call_1", "write", '{"path": 5}', True)), says(CALL, write("a", number=2)), DONE],
        "completed", "All is written.", ["a"]),
    Hazard("a tool is not there", [
        says(CALL, ToolCall("call_1", "look", '{"at": "a"}', True)), says(CALL, write("a", number=2)), DONE],
        "completed", "All is written.", ["a"]),
    Hazard("two calls have one id", [says(CALL, write("a"), write("b")), DONE], "completed", "All is written.",
           ["a", "b"], apis=(CHAT, MESSAGES, CONVERSE)),
    Hazard("the token bound cuts the answer off", [says(CUT, FIRST), says(CUT, FIRST[-40:] + REST[:9])],
           "budget_exhausted", None, limits={"continuation_max_total_completion_tokens": 150}),
)


def whole(api: str, stop: Stop, *parts: Any) -> Answer:
    body = b"".join(encode_answer(api, stop, *parts, stream=False))

    def answer(peer: Peer) -> None:
        peer.head(kind="application/json")
        peer.send(body)
    return answer


def play_hazard(hazard: Hazard, api: str, fake: Fake) -> tuple[Turn, list[str]]:
    ran: list[str] = []
    box = Toolbox({"write": lambda given: ran.append(given["path"]) or "ok"})
    fake.answers = [play(api) for play in hazard.script]
    asked = request(api, tools=(WRITE, LOOK), extra=hazard.extra)
    server = Server(api, fake.url, profile=None if hazard.profile == "generic" else hazard.profile)
    plan = Plan(Limits(**hazard.limits), ability=ability(PROFILES[hazard.profile], api))
    with Live(server, EventLog(), box, QUICK) as source:
        trace = run("t", replace(asked, stream=hazard.stream), source, plan)
    return trace.steps[-1].turn, ran


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.name)
def test_a_hazard_is_met(hazard: Hazard, fake: Fake) -> None:
    for api in hazard.apis:
        fake.got.clear()
        turn, ran = play_hazard(hazard, api, fake)
        assert turn.terminal == hazard.terminal, (api, turn.notice)
        assert ran == list(hazard.ran), api
        if hazard.text is not None:
            assert turn.joined_answer().text == hazard.text, api
        assert (turn.notice is None) == (hazard.terminal == "completed"), api
        assert hazard.notice in (turn.notice or ""), api
        assert len(fake.got) == (hazard.requests or len(hazard.script)), api


def test_the_token_bound_holds_for_what_each_request_asks_for(fake: Fake) -> None:
    """150 in all: 100 for the first, which is cut and tells no usage, and the 50 that are left."""
    hazard = next(each for each in HAZARDS if each.name == "the token bound cuts the answer off")
    play_hazard(hazard, CHAT, fake)
    assert [got.json["max_tokens"] for got in fake.got] == [100, 50]


def test_a_cap_that_was_refused_is_the_old_one_again(fake: Fake) -> None:
    hazard = next(each for each in HAZARDS if each.name == "a larger cap is refused")
    play_hazard(hazard, CHAT, fake)
    assert [got.json["max_tokens"] for got in fake.got] == [100, 200, 100, 100]


def test_a_repair_names_what_it_wants_and_forbids_nothing(fake: Fake) -> None:
    hazard = next(each for each in HAZARDS if each.name == "a batch is cut and comes again")
    play_hazard(hazard, CHAT, fake)
    asked = fake.got[1].json
    assert asked["tool_choice"] == "required"
    assert '- write (path "a", text "x")\n- write (path "b")' in asked["messages"][-1]["content"]
