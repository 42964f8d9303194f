"""Streams in which a piece of a call cannot be read, or has no place: the call may lack it, so it is never released."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from loop_core.judge.gate import Admission
from loop_core.reader import read
from loop_core.wire.eventstream import event_frame
from tests.scenes.rows import each_row


def stream_of(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {each.get('type') or each['event_type']}\ndata: {json.dumps(each)}\n\n"
                   for each in events).encode()


def messages(*deltas: dict[str, Any], kind: str = "content_block_delta") -> bytes:
    started = {"type": "content_block_start", "index": 0, "content_block": {
        "type": "tool_use", "id": "c", "name": "f", "input": {}}}
    ended = {"type": "content_block_stop", "index": 0}
    pieces = ({"type": kind if number == 1 else "content_block_delta", "index": 0, "delta": each}
              for number, each in enumerate(deltas))
    return stream_of(started, *pieces, ended, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
                     {"type": "message_stop"})


def steps(*deltas: dict[str, Any], kind: str = "step.delta") -> bytes:
    call = {"type": "function_call", "id": "c", "name": "f", "arguments": {}}
    pieces = ({"event_type": kind if number == 1 else "step.delta", "index": 0, "delta": each}
              for number, each in enumerate(deltas))
    return stream_of({"event_type": "step.start", "index": 0, "step": call}, *pieces,
                     {"event_type": "step.stop", "index": 0},
                     {"event_type": "interaction.completed", "interaction": {"id": "i", "status": "requires_action"}})


def converse(*deltas: dict[str, Any]) -> bytes:
    lines = [{"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c", "name": "f"}}}},
             *({"contentBlockDelta": {"contentBlockIndex": 0, "delta": each}} for each in deltas),
             {"contentBlockStop": {"contentBlockIndex": 0}}, {"messageStop": {"stopReason": "tool_use"}}]
    return "".join(f"{json.dumps(each)}\n" for each in lines).encode()


def call_chunks(*deltas: dict[str, Any], kind: str = "tool-call-delta") -> bytes:
    def event(kind: str, call: Any) -> dict[str, Any]:
        return {"type": kind, "index": 0, "delta": {"message": {"tool_calls": call}}}

    return stream_of(event("tool-call-start", {"id": "c", "function": {"name": "f", "arguments": ""}}),
                     *(event(kind if number == 1 else "tool-call-delta", each) for number, each in enumerate(deltas)),
                     {"type": "tool-call-end", "index": 0},
                     {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}})


STREAMED: dict[str, tuple[Callable[..., bytes], Callable[[str], dict[str, Any]]]] = {
    "anthropic_messages": (messages, lambda piece: {"type": "input_json_delta", "partial_json": piece}),
    "gemini_interactions": (steps, lambda piece: {"type": "arguments_delta", "arguments": piece}),
    "bedrock_converse": (converse, lambda piece: {"toolUse": {"input": piece}}),
    "cohere_chat": (call_chunks, lambda piece: {"function": {"arguments": piece}}),
}
"""Format -> the stream of one call from the deltas of its arguments, and such a delta."""
PIECES = '{"path": "a"', ', "dry": true', "}"


@each_row("api", [api for api in STREAMED if api != "bedrock_converse"])  # whose lines are told apart by these names
def test_a_piece_of_a_call_in_an_unknown_event_holds_the_call(api: str) -> None:
    """The piece was left out, and the rest was a whole object, which ran."""
    stream, delta = STREAMED[api]
    whole, lost = stream(*map(delta, PIECES)), stream(*map(delta, PIECES), kind="call.piece")
    assert [each.admission for body in (whole, lost) for each in read(api, body).calls] == [
        Admission.READY, Admission.HELD]


@each_row("api", [api for api in STREAMED if api != "bedrock_converse"])
def test_an_unknown_event_around_a_piece_of_a_call_holds_the_call(api: str) -> None:
    """Each format looked for the piece at one place of the event; a proxy may put the whole event into another one."""
    stream, delta = STREAMED[api]
    events = stream(*map(delta, PIECES)).split(b"\n\n")
    assert PIECES[1].strip(', ').split('"')[1].encode() in events[2]
    events[2] = b'data: {"type": "proxy.chunk", "event_type": "proxy.chunk", "data": ' + (
        events[2].partition(b"data: ")[2] + b"}")
    assert [each.admission for each in read(api, b"\n\n".join(events)).calls] == [Admission.HELD]


@each_row("lost", [
    ("anthropic_messages", {"type": "text_delta", "text": PIECES[1]}),
    ("anthropic_messages", {"type": "json_delta", "partial_json": PIECES[1]}),
    ("gemini_interactions", {"type": "text", "text": PIECES[1]}),
    ("gemini_interactions", {"type": "arguments", "arguments": PIECES[1]}),
    ("bedrock_converse", {"text": PIECES[1]}), ("bedrock_converse", {"toolUse": {"partial": PIECES[1]}}),
])
def test_a_delta_that_is_no_piece_of_a_call_holds_it(lost: tuple[str, dict[str, Any]]) -> None:
    api, odd = lost
    stream, delta = STREAMED[api]
    (verdict,) = read(api, stream(delta(PIECES[0]), odd, delta(PIECES[2]))).calls
    assert (verdict.admission, verdict.rule) == (Admission.HELD, "gate.reason")


@each_row("signed", [
    ("anthropic_messages", {"type": "signature_delta", "signature": "c2ln"}),
    ("gemini_interactions", {"type": "thought_signature", "signature": "c2ln"}),
    ("bedrock_converse", {"reasoningContent": {"signature": "c2ln"}}), ("bedrock_converse", {"toolUse": {}}),
    ("bedrock_converse", {"toolUse": {"input": None}}),
])
def test_a_delta_without_characters_of_a_call_holds_nothing(signed: tuple[str, dict[str, Any]]) -> None:
    api, odd = signed
    stream, delta = STREAMED[api]
    (verdict,) = read(api, stream(delta(PIECES[0]), odd, delta(PIECES[2]))).calls
    assert verdict.admission is Admission.READY


def test_an_empty_piece_of_a_call_in_a_block_of_text_holds_nothing() -> None:
    empty = [{"contentBlockDelta": {"contentBlockIndex": 1, "delta": each}} for each in (
        {"text": "I look."}, {"toolUse": {"input": ""}})]
    body = "".join(f"{json.dumps(each)}\n" for each in empty).encode() + converse({"toolUse": {"input": "{}"}})
    assert [each.admission for each in read("bedrock_converse", body).calls] == [Admission.READY]


VALUES = {"jsonPath": "$.path", "stringValue": "a", "willContinue": True}, {"jsonPath": "$.path", "stringValue": "b"}


@each_row("parts", [
    # the text at a path that is open gets a number
    [{"name": "f", "willContinue": True}, {"partialArgs": [VALUES[0]], "willContinue": True},
     {"partialArgs": [{"jsonPath": "$.path", "numberValue": 1}], "willContinue": True}, {}],
    # values come after the call said that it was over
    [{"name": "f", "partialArgs": list(VALUES)}, {"partialArgs": [{"jsonPath": "$.dry", "boolValue": True}]}],
])
def test_values_that_have_no_place_in_a_call_of_gemini_hold_it(parts: list[dict[str, Any]]) -> None:
    """The number was dropped, or the call ran without the values behind its end."""
    chunks = [{"candidates": [{"content": {"parts": [{"functionCall": part}]}, "index": 0}]} for part in parts]
    ended = {"candidates": [{"index": 0, "finishReason": "STOP"}]}
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in [*chunks, ended]).encode()
    assert Admission.READY not in {each.admission for each in read("gemini_generate", body).calls}


@each_row("end", [{}, {"stringValue": None, "numberValue": None, "boolValue": None, "nullValue": None}])
def test_the_last_piece_of_a_text_of_gemini_may_have_no_text(end: dict[str, Any]) -> None:
    """A dump of an SDK's object writes null for each member that is not set; such a call was held."""
    parts = [{"name": "f", "willContinue": True}, {"partialArgs": [VALUES[0]], "willContinue": True},
             {"partialArgs": [{"jsonPath": "$.path", **end}], "willContinue": True}, {}]
    chunks = [{"candidates": [{"content": {"parts": [{"functionCall": part}]}, "index": 0}]} for part in parts]
    ended = {"candidates": [{"index": 0, "finishReason": "STOP"}]}
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in [*chunks, ended]).encode()
    (verdict,) = read("gemini_generate", body).calls
    assert (verdict.admission, verdict.call.arguments) == (Admission.READY, '{"path":"a"}')


def test_a_piece_under_the_index_of_a_later_call_of_chat_holds_the_call_that_took_it() -> None:
    """Events arrived in another order: a piece of the second call stood in the arguments of the first, which ran."""
    first, second = ({"index": at, "id": f"c{at}", "function": {"name": name, "arguments": ""}}
                     for at, name in enumerate(("write", "delete")))
    deltas = [first, *({"index": at, "function": {"arguments": piece}} for at, piece in (
        (0, '{"path": "'), (1, "/tmp/x"), (0, 'a"}'))), second, {"index": 1, "function": {"arguments": '{"path": ""}'}}]
    chunks = [{"id": "i", "choices": [{"index": 0, "delta": {"tool_calls": [each]}}]} for each in deltas]
    ended = {"id": "i", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in [*chunks, ended]).encode() + b"data: [DONE]\n\n"
    assert [each.admission for each in read("openai_chat", body).calls] == [Admission.HELD] * 2


def chat_body(*choices: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps({"id": "i", "choices": [each]}).encode() + b"\n\n" for each in choices)


def piece_of_chat(index: int, piece: str, **opening: Any) -> dict[str, Any]:
    call = {"index": 0, **opening.pop("call", {}), "function": {**opening, "arguments": piece}}
    return {"index": index, "delta": {"tool_calls": [call]}}


ENDED = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}


@each_row(("index", "calls"), [(0, ["ready"]), (1, ["held"])])
def test_a_piece_of_a_call_in_another_choice_holds_the_call(index: int, calls: list[str]) -> None:
    """The other choice is not read, no call begins there, and the call of the first choice ran without the piece."""
    begun = piece_of_chat(0, PIECES[0], call={"id": "c"}, name="f")
    body = chat_body(begun, piece_of_chat(index, PIECES[1]), piece_of_chat(0, PIECES[2]), ENDED) + b"data: [DONE]\n\n"
    assert [str(each.admission) for each in read("openai_chat", body).calls] == calls


@each_row(("ids", "calls"), [(("c0", "c1"), ["ready", "ready"]), (("c1", "c0"), ["held", "held"])])
def test_a_piece_whose_index_names_one_call_and_whose_id_another_holds_both(ids: list[str], calls: list[str]) -> None:
    """The index counted, and each call ran with the arguments of the other."""
    begun = [piece_of_chat(0, '{"n": ', call={"index": at, "id": f"c{at}"}, name="fg"[at]) for at in (0, 1)]
    more = [piece_of_chat(0, f"{at}}}", call={"index": at, "id": ids[at]}) for at in (0, 1)]
    body = chat_body(*begun, *more, ENDED) + b"data: [DONE]\n\n"
    assert [str(each.admission) for each in read("openai_chat", body).calls] == calls


def test_a_whole_call_in_another_choice_holds_nothing() -> None:
    begun = [piece_of_chat(index, "{}", call={"id": f"c{index}"}, name="f") for index in (0, 1)]
    body = chat_body(*begun, ENDED, {**ENDED, "index": 1}) + b"data: [DONE]\n\n"
    assert [each.admission for each in read("openai_chat", body).calls] == [Admission.READY]


@each_row(("name", "calls"), [({}, ["held"]), ({"name": "g"}, ["ready"])])
def test_a_piece_of_a_call_in_another_candidate_of_gemini_holds_the_call(
    name: dict[str, str], calls: list[str]
) -> None:
    parts = [{"name": "f", "willContinue": True}, {"partialArgs": [VALUES[1]], "willContinue": True}, {}]
    other = {"partialArgs": [{"jsonPath": "$.dry", "boolValue": True}], **name}
    candidates = [*({"index": 0, "content": {"parts": [{"functionCall": part}]}} for part in parts[:2]),
                  {"index": 1, "content": {"parts": [{"functionCall": other}]}},
                  {"index": 0, "content": {"parts": [{"functionCall": parts[2]}]}, "finishReason": "STOP"}]
    body = "".join(f"data: {json.dumps({'candidates': [each]})}\n\n" for each in candidates).encode()
    assert [str(each.admission) for each in read("gemini_generate", body).calls] == calls


@each_row("api", ["openai_chat", "gemini_interactions"])
def test_a_piece_that_is_no_text_between_pieces_of_text_holds_the_call(api: str) -> None:
    """Its JSON was read as a part of the text: the call ran with `/tmp/true.txt`."""
    def released(*sent: Any) -> list[str]:
        if api == "gemini_interactions":
            body = steps(*({"type": "arguments_delta", "arguments": each} for each in sent))
        else:
            begun = piece_of_chat(0, "", call={"id": "c"}, name="f")
            body = chat_body(begun, *(piece_of_chat(0, each) for each in sent), ENDED)
        return [str(each.admission) for each in read(api, body).calls]

    assert released('{"path": "/tmp/', "a", '.txt"}') == ["ready"]
    assert released('{"path": "/tmp/', True, '.txt"}') == released('{"path": "/tmp/', 7, '.txt"}') == ["held"]
    assert released({"path": "/tmp/a.txt"}) == released("", {"path": "/tmp/a.txt"}) == ["ready"]


def test_a_piece_of_a_call_of_claude_in_a_chunk_without_a_type_holds_the_call() -> None:
    """InvokeModel read such a chunk as one of Nova's, whose calls have no member of that name."""
    def chunks(*events: dict[str, Any]) -> bytes:
        packed = (b64encode(json.dumps(each).encode()).decode() for each in events)
        return b"".join(event_frame("chunk", json.dumps({"bytes": each}).encode()) for each in packed)

    events = [json.loads(each.partition(b"data: ")[2]) for each in
              messages(*({"type": "input_json_delta", "partial_json": each} for each in PIECES)).split(b"\n\n")[:-1]]
    lost = [{name: value for name, value in each.items() if name != "type"} if number == 2 else each
            for number, each in enumerate(events)]
    assert [each.admission for sent in (events, lost) for each in read("bedrock_invoke", chunks(*sent)).calls] == [
        Admission.READY, Admission.HELD]


@each_row(("sent", "calls"), [
    (({}, '{"n": 1}'), [('{"n": 1}', "ready")]),  # the empty object meant that nothing had come yet
    (({}, ""), [("{}", "ready")]),
    (("{}", '{"n": 1}'), [('{}{"n": 1}', "held")]),  # two texts, of which nothing shows which one is meant
])
def test_an_empty_object_before_the_text_of_a_call_of_chat_is_no_part_of_it(sent: Any, calls: Any) -> None:
    begun = piece_of_chat(0, sent[0], call={"id": "c"}, name="f")
    reading = read("openai_chat", chat_body(begun, piece_of_chat(0, sent[1]), ENDED))
    assert [(each.call.arguments, str(each.admission)) for each in reading.calls] == calls


def between(odd: Callable[[bytes], bytes]) -> list[str]:
    """What the gate says of a call of Chat of which the event with the second of three pieces was made `odd`."""
    begun = piece_of_chat(0, "", call={"id": "c"}, name="f")
    body = chat_body(begun, *(piece_of_chat(0, each) for each in ('{"path": "/tmp/', "a", '.txt"}')), ENDED)
    events = body.split(b"\n\n")
    return [str(each.admission) for each in read("openai_chat", b"\n\n".join((
        *events[:2], odd(events[2]), *events[3:]))).calls]


@each_row("line", [b" data: ", b"\t data:", b"DATA: ", b"data : ", b"data ", b"\x00data: ", b"\xef\xbb\xbfdata: ",
                   b"da\n1f4\nta: ", b"data\r\n1f4\r\n: ", b"1f4data: ", b"event: chunkdata: ",
                   b"data\n\n: ", b"data\r\n\r\n: "])
def test_a_piece_of_a_call_in_a_line_that_is_no_field_holds_the_call(line: bytes) -> None:
    """Clients differ in whether they read such a line. A proxy that passes on the framing of chunks splits lines so."""
    assert between(lambda event: event.replace(b"data: ", line)) == ["held"]


@each_row("line", [b": {\"queue\": 3}", b"id: {\"n\": 1}", b"retry: 5", b"1f4", b": keep alive", b"x-proxy: [1]"])
def test_a_line_that_holds_no_event_loses_nothing(line: bytes) -> None:
    assert between(lambda event: line + b"\n" + event) == ["ready"]
    assert between(lambda event: event + b"\n\n" + line) == ["ready"]
    assert between(lambda event: b"data\n\n" + event + b"\n\n" + line) == ["ready"]


@each_row("odd", ["[%s]", '{"data": %s}', '{"result": {"data": %s}}', '{"choices": {"0": %s}}', "text"])
def test_an_event_with_a_piece_of_a_call_in_a_list_a_text_or_another_event_holds_the_call(odd: str) -> None:
    def changed(event: bytes) -> bytes:
        value = event.removeprefix(b"data: ").decode()
        return b"data: " + (json.dumps(value) if odd == "text" else odd % value).encode()

    assert between(changed) == ["held"]


@each_row("empty", ["null", "[]", '""', "7", "{}", '{"status": {"queue": 1}}'])
def test_an_event_without_any_part_of_a_call_loses_nothing(empty: str) -> None:
    assert between(lambda event: event + b"\n\ndata: " + empty.encode()) == ["ready"]


@each_row(("api", "place"), [
    ("openai_chat", '"delta": '), ("openai_chat", '"function": '), ("openai_chat", '"arguments": '),
    ("cohere_chat", '"delta": '), ("cohere_chat", '"tool_calls": '), ("cohere_chat", '"arguments": '),
    ("gemini_interactions", '"arguments": '), ("anthropic_messages", '"partial_json": '),
])
def test_a_piece_of_a_call_under_a_name_that_is_not_read_holds_the_call(api: str, place: str) -> None:
    """As in damaged bytes: the call was released without the piece."""
    pieces = ['{"path": "/tmp/', "a", '.txt"}']
    if api == "openai_chat":
        begun = piece_of_chat(0, "", call={"id": "c"}, name="f")
        body = chat_body(begun, *(piece_of_chat(0, each) for each in pieces), ENDED)
    else:
        builder, wrap = STREAMED[api]
        body = builder(*map(wrap, pieces))
    middle = next(each for each in body.split(b"\n\n") if b'"a"' in each)
    odd = middle.replace(place.encode(), place.replace('": ', '_": ').encode(), 1)
    assert odd != middle
    assert [str(each.admission) for sent in (body, body.replace(middle, odd)) for each in read(api, sent).calls] == [
        "ready", "held"]


@each_row("call", [{"arguments": None}, {"arguments": ""}, {}, {"name": None}, {"parsed": None, "strict": True}])
def test_an_empty_piece_of_a_call_holds_nothing(call: dict[str, Any]) -> None:
    event = {"index": 0, "delta": {"tool_calls": [{"index": 0, "type": "function", "function": call}]}}
    assert between(lambda middle: middle + b"\n\ndata: " + json.dumps({"choices": [event]}).encode()) == ["ready"]


def test_a_block_of_messages_with_an_input_and_no_type_holds_the_other_calls() -> None:
    """Such a call was left out, and the rest of the batch ran without it."""
    odd = {"id": "a", "name": "g", "input": {"n": 1}}
    block = {"type": "tool_use", "id": "c", "name": "f", "input": {"n": 1}}
    streamed = stream_of(
        *(event for index, each in enumerate((odd, block)) for event in (
            {"type": "content_block_start", "index": index, "content_block": each},
            {"type": "content_block_stop", "index": index})),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"})
    whole = json.dumps({"type": "message", "content": [odd, block], "stop_reason": "tool_use"}).encode()
    for body in (streamed, whole):
        assert [str(each.admission) for each in read("anthropic_messages", body).calls] == ["held"]
        typed = body.replace(b'{"id": "a"', b'{"type": "server_tool_use", "id": "a"')
        assert [str(each.admission) for each in read("anthropic_messages", typed).calls] == ["ready"]


@each_row(("api", "value", "call"), [
    ("openai_chat", {"choices": [{"index": 0, "message": {"tool_calls": []}, "finish_reason": "tool_calls"}]},
     {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}),
    ("ollama_chat", {"model": "m", "message": {"role": "assistant", "tool_calls": []}, "done": True,
                     "done_reason": "stop"}, {"function": {"name": "f", "arguments": {"n": 1}}}),
    ("cohere_chat", {"id": "i", "message": {"role": "assistant", "tool_calls": []}, "finish_reason": "TOOL_CALL"},
     {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}),
])
def test_a_call_of_a_list_under_a_name_that_is_not_read_holds_the_others(api: str, value: Any, call: Any) -> None:
    """It was left out, and the rest of the batch ran."""
    message = value.get("message") or value["choices"][0]["message"]
    other = {**call, "function": {**call["function"], "name": "g"}}
    odd = {"functions" if name == "function" else name: inner for name, inner in call.items()}
    for listed, expected in (([call, other], ["ready", "ready"]), ([odd, other], ["held", "held"])):
        message["tool_calls"] = listed
        found = read(api, json.dumps(value).encode()).calls
        assert [str(each.admission) for each in found if each.call.name or expected[0] == "held"] == expected[
            : len(found)]


def test_an_item_of_an_unknown_type_with_the_members_of_a_call_holds_the_others() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
    for kind, expected in (("function_call", ["ready", "ready"]), ("funktion_call", ["held"])):
        output = [{**call, "type": kind, "call_id": "b"}, call]
        body = json.dumps({"id": "r", "object": "response", "status": "completed", "output": output}).encode()
        assert [str(each.admission) for each in read("openai_responses", body).calls] == expected


def message_with(*blocks: dict[str, Any]) -> tuple[bytes, bytes]:
    """A message of Claude with these blocks and a call, whole and streamed."""
    content = [*blocks, {"type": "tool_use", "id": "c", "name": "f", "input": {"n": 1}}]
    events = (event for index, each in enumerate(content) for event in (
        {"type": "content_block_start", "index": index, "content_block": each},
        {"type": "content_block_stop", "index": index}))
    ended = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    whole = {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}
    return json.dumps(whole).encode(), stream_of(*events, ended, {"type": "message_stop"})


def gemini_with(part: dict[str, Any]) -> tuple[bytes, bytes]:
    call = {"functionCall": {"name": "f", "args": {"n": 1}}}
    body = json.dumps({"candidates": [{"index": 0, "finishReason": "STOP", "content": {"parts": [part, call]}}]})
    return body.encode(), f"data: {body}\n\n".encode()


def interaction_with(*steps: dict[str, Any]) -> tuple[bytes, bytes]:
    found = [*steps, {"type": "function_call", "id": "c", "name": "f", "arguments": {"n": 1}}]
    told = {"id": "i", "status": "requires_action"}
    events = (event for index, each in enumerate(found) for event in (
        {"event_type": "step.start", "index": index, "step": each}, {"event_type": "step.stop", "index": index}))
    return (json.dumps({**told, "object": "interaction", "steps": found}).encode(),
            stream_of(*events, {"event_type": "interaction.completed", "interaction": told}))


def converse_with(block: dict[str, Any]) -> tuple[bytes, ...]:
    content = [block, {"toolUse": {"toolUseId": "c", "name": "f", "input": {"n": 1}}}]
    return (json.dumps({"output": {"message": {"role": "assistant", "content": content}},
                        "stopReason": "tool_use"}).encode(),)


@each_row(("api", "bodies", "expected"), [
    ("anthropic_messages", message_with({"type": "skill_use", "id": "a", "name": "g", "input": {}}), "held"),
    ("anthropic_messages", message_with({"type": "skill_use", "id": "a", "name": "g", "input": {}}, {
        "type": "skill_result", "tool_use_id": "a", "content": []}), "ready"),  # so the provider ran it
    ("anthropic_messages", message_with({"type": "skill_use", "id": "a", "name": "g", "input": {}}, {
        "type": "skill_result", "tool_use_id": "b", "content": []}), "held"),
    ("anthropic_messages", message_with({"type": "skill", "id": "a", "name": "g"}), "ready"),
    ("anthropic_messages", message_with({"type": "server_tool_use", "id": "a", "name": "g", "input": {}}), "ready"),
    ("gemini_generate", gemini_with({"skillCall": {"name": "g", "args": {}}}), "held"),
    ("gemini_generate", gemini_with({"toolCall": {"toolType": "GOOGLE_SEARCH", "args": {"queries": ["a"]}}}), "ready"),
    ("gemini_generate", gemini_with({"skill": {"name": "g"}}), "ready"),
    ("gemini_interactions", interaction_with({"type": "skill_call", "id": "a", "name": "g", "arguments": {}}), "held"),
    ("gemini_interactions", interaction_with({
        "type": "mcp_server_tool_call", "id": "a", "name": "g", "server_name": "s", "arguments": {}}), "ready"),
    ("gemini_interactions", interaction_with({"type": "google_search_call", "id": "a", "arguments": {}}), "ready"),
    ("bedrock_converse", converse_with({"skillUse": {"toolUseId": "a", "name": "g", "input": {}}}), "held"),
    ("bedrock_converse", converse_with({"document": {"name": "g", "format": "txt", "source": {}}}), "ready"),
])
def test_a_part_of_an_unknown_type_that_may_be_a_call_holds_the_others(
    api: str, bodies: tuple[bytes, ...], expected: str
) -> None:
    """It was left out, and the rest of the batch ran without it."""
    for body in bodies:
        assert [str(each.admission) for each in read(api, body).calls] == [expected]


@each_row(("api", "body", "lost"), [
    ("anthropic_messages", message_with(
        {"type": "tool_use", "id": "a", "name": "g", "input": {}}, {"type": "fallback", "from": {}, "to": {}})[1],
     b'"content_block_start", "index": 1'),
    ("gemini_interactions", interaction_with(*[{"type": "thought"}] * 2)[1], b'"step.start", "index": 1'),
])
def test_an_event_that_ends_a_part_which_never_began_holds_the_calls(api: str, body: bytes, lost: bytes) -> None:
    """The part was a call, or the place where a model gave way to another, whose calls alone count."""
    events = body.split(b"\n\n")
    kept = [each for each in events if lost not in each]
    assert len(kept) == len(events) - 1
    admissions = [{str(each.admission) for each in read(api, b"\n\n".join(sent)).calls} for sent in (events, kept)]
    assert admissions == [{"ready"}, {"held"}]


@each_row("api", ["anthropic_messages", "gemini_interactions"])
def test_an_end_that_came_twice_or_before_all_parts_holds_nothing(api: str) -> None:
    body = messages({"type": "input_json_delta", "partial_json": "{}"}) if api == "anthropic_messages" else steps(
        {"type": "arguments_delta", "arguments": "{}"})
    events = body.split(b"\n\n")
    stop = next(each for each in events if b"stop" in each.partition(b"\n")[0])
    at = events.index(stop)
    for sent in ([*events[:at], stop, *events[at:]], [stop.replace(b'"index": 0', b'"index": 5'), *events]):
        assert [str(each.admission) for each in read(api, b"\n\n".join(sent)).calls] == ["ready"]
