"""Log records of OpenTelemetry: events of every age, alone or beside spans, in OTLP and as SDKs print them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loop_core.values import At, ExchangePart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import places, rules, show, stops, words
from tests.sessions.test_otlp import Row, chat, message_of, notices, pairs, span, text, value

CHOICE, DETAILS = "gen_ai.choice", "gen_ai.client.inference.operation.details"
USER, TOOL = "gen_ai.user.message", "gen_ai.tool.message"


def record(
    name: str, body: Any = None, number: int = 1, *, at: str = "s1", trace: str = "t1", **attributes: Any
) -> Row:
    """A log record in OTLP: at the span `at`, with a body of plain values."""
    ids = {"traceId": trace, "spanId": at} if at else {}
    return {"timeUnixNano": str(1770000000000000000 + number), "eventName": name, "body": value(body) if body else {},
            "attributes": pairs({"gen_ai.system": "openai", **attributes}), **ids}


def logs(*records: Row, resources: str = "resourceLogs", scopes: str = "scopeLogs", name: str = "logRecords") -> str:
    return json.dumps({resources: [{"resource": {}, scopes: [{"scope": {}, name: list(records)}]}]})


def trace_of(attributes: Row, *events: Row) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span(1, attributes, events=list(events))]}]}]})


def both(spans: list[Row], *records: Row) -> str:
    exported = [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, json.loads(logs(*records))]
    return "\n".join(map(json.dumps, exported))


def call(arguments: str = '{"path": "."}', key: str = "call_1") -> Row:
    return {"id": key, "type": "function", "function": {"name": "ls", "arguments": arguments}}


def choice(content: str | None = None, word: str | None = "stop", index: int = 0, *calls: Row) -> Row:
    message: Row = {"role": "assistant"}
    if content is not None:
        message["content"] = content
    if calls:
        message["tool_calls"] = list(calls)
    return {"index": index, "message": message, **({"finish_reason": word} if word else {})}


def texts(seen: Any) -> list[str | None]:
    return [facts.exchange.response.text for facts in seen.responses]


def quote(seen: Any, at: At, number: int = 0) -> str:
    body = seen.responses[number].exchange.body
    assert (at.part, type(body)) == (ExchangePart.BODY, bytes)
    return body[at.start : at.end].decode()


def stop_at(seen: Any) -> str:
    (evidence,) = (each for each in seen.responses[0].judgement.stop.evidence if each.rule.startswith("otlp"))
    return quote(seen, evidence.at)


def test_the_records_of_each_request_and_its_choice_are_an_answer(tmp_path):
    go = {"content": "What is here?"}
    seen = show(logs(
        record("gen_ai.system.message", {"content": "You list files."}), record(USER, go, 2),
        record(CHOICE, choice(None, "tool_calls", 0, call()), 3),
        record("gen_ai.system.message", {"content": "You list files."}, 4, at="s2"), record(USER, go, 5, at="s2"),
        record("gen_ai.assistant.message", {"tool_calls": [call()]}, 6, at="s2"),
        record(TOOL, {"id": "call_1", "content": "a.py"}, 7, at="s2"),
        record(CHOICE, choice("One file.", "length"), 8, at="s2")), tmp_path)
    assert (stops(seen), places(seen)) == (["tool_call", "max_tokens"], [["request", "tool_result"]])
    assert rules(seen)[:2] == ["transcript.recorder", "otlp.finish_reasons"]
    first, second = (facts.exchange for facts in seen.responses)
    assert first.request.messages[0].text == "What is here?"
    assert [(each.name, each.arguments) for each in first.response.parts] == [("ls", '{"path": "."}')]
    assert second.request.messages[0].parts[0].text == "a.py"
    assert first.started.startswith("2026-02-02T02:40:00")
    assert quote(seen, seen.responses[0].verdicts[0].call.at) == json.dumps(
        record(CHOICE, choice(None, "tool_calls", 0, call()), 3))
    assert '"tool_calls"' in stop_at(seen)
    assert "is not an answer" not in notices(seen)


@pytest.mark.parametrize(("resources", "scopes", "name"), [
    ("resource_logs", "scope_logs", "log_records"), ("resourceLogs", "instrumentationLibraryLogs", "logRecords")])
def test_the_names_of_the_protocol_and_of_its_older_versions(resources, scopes, name, tmp_path):
    written = logs(record(CHOICE, choice("Hi.")), resources=resources, scopes=scopes, name=name)
    assert texts(show(f"{written}\n{written.replace('s1', 's2')}\n", tmp_path)) == ["Hi.", "Hi."]


def test_a_cut_call_in_a_choice_is_held(tmp_path):
    seen = show(logs(record(CHOICE, choice(None, "length", 0, call('{"path": "sr')))), tmp_path)
    assert words(seen) == ["CALL HELD"]
    assert seen.responses[0].verdicts[0].call.arguments == '{"path": "sr'


def test_an_answer_in_a_span_and_in_log_records_is_counted_once(tmp_path):
    bare = chat([], word="length", **{"gen_ai.response.id": "r1"})
    bare.pop("gen_ai.output.messages")
    records = record(USER, {"content": "go"}), record(CHOICE, choice("One, two", "length"), 2)
    seen = show(both([span(1, bare)], *records), tmp_path)
    assert (texts(seen), stops(seen), words(seen)) == (["One, two"], ["max_tokens"], ["TRUNCATED"])
    assert seen.responses[0].exchange.request.messages[0].text == "go"
    assert '"gen_ai.response.finish_reasons"' in stop_at(seen), "the span has a word of its own"
    whole = chat([message_of(text("From the span."))], [message_of(text("go"), role="user")])
    assert texts(show(both([span(1, whole)], *records), tmp_path)) == ["From the span."]
    wordless = {key: held for key, held in bare.items() if key != "gen_ai.response.finish_reasons"}
    assert stop_at(show(both([span(1, wordless)], *records), tmp_path)) == json.dumps(records[1])
    assert len(show(both([span(1, bare), span(2, bare)], *records), tmp_path).responses) == 2


def test_a_record_with_the_attributes_of_a_span_is_an_answer(tmp_path):
    held = chat([message_of(text("Half"))], [message_of(text("go"), role="user")], "length", **{
        "gen_ai.request.max_tokens": 64, "gen_ai.usage.output_tokens": 64})
    seen = show(logs(record(DETAILS, None, **held)), tmp_path)
    exchange = seen.responses[0].exchange
    assert (texts(seen), stops(seen), exchange.request.max_tokens) == (["Half"], ["max_tokens"], 64)
    assert (exchange.response.usage.output_tokens, exchange.response.model) == (64, "gpt-5")
    seen = show(logs(record(DETAILS, {"gen_ai.output.messages": [message_of(text("In the body."),
                                                                            finish_reason="stop")]})),
                tmp_path)
    assert (texts(seen), stops(seen)) == (["In the body."], ["end_turn"])
    failed = record(DETAILS, None, **{"gen_ai.operation.name": "chat", "error.type": "timeout"})
    assert words(show(logs(failed), tmp_path)) == ["ERROR"]
    embedding = record(DETAILS, None, **{"gen_ai.operation.name": "embeddings", "gen_ai.usage.output_tokens": 1})
    assert show(logs(embedding), tmp_path).responses == ()


def test_a_word_without_content_says_that_the_content_is_missing(tmp_path):
    seen = show(logs(record(CHOICE, choice(None, "stop"))), tmp_path)
    assert words(seen) == ["END NOT RECORDED"]
    assert stops(seen) == ["unknown"]


@each_row("other", [
    record("claude_code.api_request", "claude_code.api_request", model="m", output_tokens=5),
    record(USER, {"content": "never answered"}), record("gen_ai.evaluation.result"), record("", "GET / 200")])
def test_log_records_of_no_answer_are_counted(other, tmp_path):
    seen = show(logs(other), tmp_path)
    assert seen.responses == ()
    assert "log records that are no part of an answer of a model: 1" in notices(seen)
    assert "spans that are not" not in notices(seen)


def test_a_batch_that_was_sent_again_is_read_once(tmp_path):
    written = logs(record(USER, {"content": "go"}), record(CHOICE, choice("Hi."), 2))
    assert texts(show(f"{written}\n{written}\n", tmp_path)) == ["Hi."]


def test_records_without_ids_are_told_apart_by_their_requests(tmp_path):
    seen = show(logs(*(record(name, body, number, at="") for number, (name, body) in enumerate((
        (USER, {"content": "one?"}), (CHOICE, choice("One.")), (USER, {"content": "two?"}), (CHOICE, choice("Two.")),
        (CHOICE, choice("Two, again.")))))), tmp_path)
    assert texts(seen) == ["One.", "Two.", "Two, again."]


def test_of_several_choices_only_the_first_is_read_and_no_call_is_joined(tmp_path):
    seen = show(logs(record(CHOICE, choice("A", "tool_calls", 0, call())),
                      record(CHOICE, choice("B", "tool_calls", 1, call(key="call_2")), 2)), tmp_path)
    assert texts(seen) == ["A"]
    assert [verdict.call.id for verdict in seen.responses[0].verdicts] == ["call_1"]


def test_the_pieces_of_a_stream_that_google_genai_writes_as_choices_are_one_answer(tmp_path):
    def piece(index: int, *parts: Row, word: str | None = None) -> Row:
        more = {"finish_reason": word} if word else {}
        return record(CHOICE, {"index": index, "content": {"parts": list(parts), "role": "model"}, **more}, index)

    hello, there = {"text": "Hel"}, {"text": "lo."}
    use = {"function_call": {"name": "ls", "args": {"path": "."}}}
    seen = show(logs(piece(0, hello), piece(1, there), piece(2, use, word="MAX_TOKENS")), tmp_path)
    assert (texts(seen), stops(seen)) == (["Hello."], ["max_tokens"])
    assert [verdict.call.name for verdict in seen.responses[0].verdicts] == ["ls"]
    assert '"MAX_TOKENS"' in stop_at(seen)
    assert '"Hel"' in quote(seen, seen.responses[0].verdicts[0].call.at)
    two = logs(piece(0, hello), piece(1, use, word="STOP"), piece(2, use, word="STOP"))
    assert show(two, tmp_path).responses[0].verdicts == (), "two words: two answers, never joined"
    hidden = record(CHOICE, {"index": 0, "content": "<elided>", "finish_reason": "STOP"})
    seen = show(logs(record(USER, {"content": "<elided>"}), hidden), tmp_path)
    assert (texts(seen), words(seen)) == ([None], ["END NOT RECORDED"])


@pytest.mark.parametrize("held", [
    record(CHOICE, json.dumps(choice("Hi."))),
    record("", None, **{"event.name": CHOICE, "gen_ai.event.content": json.dumps(choice("Hi."))}),
    record("", choice("Hi."), event_name="gen_ai.content.completion"),
    record(CHOICE, {"index": 0, "finish_reason": "stop", "message": "Hi."})])
def test_bodies_and_names_as_each_library_writes_them(held, tmp_path):
    asked = record("", {"role": "user", "content": "go"}, 0, event_name="gen_ai.content.prompt")
    seen = show(logs(asked, held), tmp_path)
    assert (texts(seen), stops(seen)) == (["Hi."], ["end_turn"])
    assert seen.responses[0].exchange.request.messages[0].text == "go"


def test_the_calls_beside_a_message_are_read(tmp_path):
    body = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "model"}, "tool_calls": [call()]}
    seen = show(logs(record(CHOICE, body)), tmp_path)
    assert [verdict.call.arguments for verdict in seen.responses[0].verdicts] == ['{"path": "."}']


def test_a_record_of_an_agents_span_is_no_answer_of_a_model(tmp_path):
    hi, wordless = record(CHOICE, choice("Hi."), at="s0"), {"gen_ai.operation.name": "invoke_agent"}
    model = span(1, chat([message_of(text("Hi."))]), "s0")
    assert texts(show(both([span(0, wordless), model], hi), tmp_path)) == ["Hi."]
    assert texts(show(both([span(0, {"openinference.span.kind": "CHAIN"}), model], hi), tmp_path)) == ["Hi."]
    seen = show(both([span(0, {"http.route": "/ask"})], hi), tmp_path)
    assert texts(seen) == ["Hi."], "the span says nothing of a model"


def test_the_record_of_a_span_with_the_same_response_is_not_counted_again(tmp_path):
    whole = chat([message_of(text("Hi."))], **{"gen_ai.response.id": "r1"})
    details = {"gen_ai.operation.name": "chat", "gen_ai.response.id": "r1", "gen_ai.response.finish_reasons": ["stop"]}
    assert texts(show(both([span(1, whole)], record(DETAILS, None, at="", **details)), tmp_path)) == ["Hi."]
    other = {**details, "gen_ai.response.id": "r2"}
    assert texts(show(both([span(1, whole)], record(DETAILS, None, at="", **other)), tmp_path)) == ["Hi.", None]
    again = (record(DETAILS, None, 1, at="", **details), record(DETAILS, None, 2, at="", **details))
    assert texts(show(both([span(1, whole)], *again), tmp_path)) == ["Hi."]
    held = {"gen_ai.output.messages": json.dumps([message_of(text("Hi."))]), **details}
    for two in ((details, held), (held, details)):
        records = (record(DETAILS, None, number, at=f"s{number}", **each) for number, each in enumerate(two))
        assert texts(show(logs(*records), tmp_path)) == ["Hi."], "a framework and the client below it"
    nameless = record(DETAILS, None, at="", trace="", **{"error.type": "timeout"})
    nameless.pop("traceId", None)
    assert texts(show(both([span(1, whole)], nameless), tmp_path)) == ["Hi."], "it may be that of the span"


def test_protobuf_with_log_records(tmp_path):
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

    one = record(CHOICE, choice("Hi.", "length"))
    held = json.loads(logs({**one, "traceId": "MTIzNDU2Nzg5MDEyMzQ1Ng==", "spanId": "MTIzNDU2Nzg="}))
    data = ParseDict(held, LogsData()).SerializeToString()
    for written in (data, len(data).to_bytes(4, "big") + data):
        seen = show(written, tmp_path, name="logs.pb")
        assert (texts(seen), stops(seen)) == (["Hi."], ["max_tokens"])


# -- As SDKs print them ------------------------------------------------------------------------------------------------


def console_row(name: str, body: Any, **attributes: Any) -> Row:
    """A log record as the console exporter of Python's SDK prints it."""
    return {"body": body, "severity_number": None, "severity_text": None, "attributes": attributes,
            "dropped_attributes": 0, "timestamp": None, "observed_timestamp": "2026-02-02T02:40:00.000001Z",
            "trace_id": "0x1f", "span_id": "0x2f", "trace_flags": 1, "resource": {"attributes": {}, "schema_url": ""},
            "event_name": name}


def test_log_records_that_pythons_console_exporter_printed(tmp_path):
    records = console_row(USER, {"content": "go"}), console_row(CHOICE, choice("Hi.", "length"))
    alone = "\n".join(json.dumps(each, indent=4) for each in records)
    seen = show(alone, tmp_path)
    assert (texts(seen), stops(seen)) == (["Hi."], ["max_tokens"])
    assert seen.responses[0].exchange.started.startswith("2026-02-02T02:40:00")
    bare = {"name": "chat m", "context": {"trace_id": "0x1f", "span_id": "0x2f"}, "parent_id": None,
            "start_time": "2026-02-02T02:40:00Z", "status": {"status_code": "UNSET"}, "events": [],
            "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}}
    seen = show(f"{alone}\n{json.dumps(bare, indent=4)}", tmp_path)
    assert (texts(seen), seen.responses[0].exchange.response.model) == (["Hi."], "m")
    other = json.dumps(console_row("", "GET / 200"), indent=4)
    assert "it has no mark" in str(show(other, tmp_path).inputs[0].error), "a program's log, which names no model"


def of_js(name: str, body: Any = None, at: str = "b1", **attributes: Any) -> Row:
    """A log record as the JavaScript SDK's object is written to a file."""
    return {"hrTime": [1770000000, 5000000], "hrTimeObserved": [1770000000, 5000000],
            "spanContext": {"traceId": "a1", "spanId": at, "traceFlags": 1},
            "resource": {"_rawAttributes": [["service.name", "copilot-chat"]]},
            "instrumentationScope": {"name": "copilot-chat"}, "attributes": {"event.name": name, **attributes},
            "_body": body, "_isReadonly": True}


def js_span(key: str, parent: str, attributes: Row, **more: Any) -> Row:
    return {"_spanContext": {"traceId": "a1", "spanId": key, "traceFlags": 1}, "kind": 2, "name": "chat m",
            "parentSpanContext": {"traceId": "a1", "spanId": parent}, "attributes": attributes, "links": [],
            "events": [], "startTime": [1770000000, 5000000], "endTime": [1770000002, 0], "status": {"code": 0}, **more}


def test_the_file_of_copilot_chat_has_spans_records_and_metrics_in_one(tmp_path):
    asked = [message_of(text("go"), role="user")]
    held = chat([message_of(text("Hi."))], asked, **{"gen_ai.response.id": "r1", "gen_ai.conversation.id": "c1"})
    details = {key: held[key] for key in ("gen_ai.operation.name", "gen_ai.response.id",
                                          "gen_ai.response.finish_reasons")}
    rows = [{"resource": {}, "scopeMetrics": [{"metrics": []}]}, of_js("copilot_chat.session.start"),
            of_js(DETAILS, "GenAI inference: m", "b0", **details), js_span("b1", "b0", held),
            js_span("b0", "", {"gen_ai.operation.name": "invoke_agent"})]
    seen = show("\n".join(map(json.dumps, rows)), tmp_path)
    assert (texts(seen), stops(seen)) == (["Hi."], ["end_turn"])
    assert seen.responses[0].exchange.started.startswith("2026-02-02T02:40:00.005")
    assert "log records that are no part of an answer of a model: 1" in notices(seen)
    assert "spans that are not an answer of a model: 1" in notices(seen), "metrics are no spans"
    damaged = show("\n".join([json.dumps(rows[0]), json.dumps(rows[4])[:-9], *map(json.dumps, rows)]), tmp_path)
    assert (texts(damaged), "records that are cut or damaged were not read: 1" in notices(damaged)) == (["Hi."], True)
    for alone in (rows[2], rows[3]):
        assert len(show(json.dumps(alone), tmp_path).responses) == 1
    failed = js_span("b1", "b0", {"gen_ai.operation.name": "chat"}, status={"code": 2, "message": "boom"})
    assert words(show(json.dumps(failed), tmp_path)) == ["ERROR"]


def test_an_agent_around_the_spans_of_a_javascript_file_names_their_conversation(tmp_path):
    agent = js_span("b0", "", {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c1"})
    other = {"traceId": "a2", "spanId": "b3"}
    rows = [agent, js_span("b1", "b0", chat([message_of(text("One."))], [message_of(text("one?"), role="user")])),
            js_span("b3", "", chat([message_of(text("Two."))],
                                   [message_of(text("one?"), role="user"), message_of(text("One.")),
                                    message_of(text("two?"), role="user")],
                                   **{"gen_ai.conversation.id": "c1"}), _spanContext=other)]
    seen = show("\n".join(map(json.dumps, rows)), tmp_path)
    assert seen.responses[1].exchange.request.messages[-1].text == "two?"
    assert len({exchange.request.previous_id for exchange in (each.exchange for each in seen.responses)}) == 2


def test_the_file_of_gemini_cli_has_an_output_message_for_each_piece_of_a_stream(tmp_path):
    def details(what: str, **attributes: Any) -> Row:
        return of_js(DETAILS, f"GenAI operation {what} from gemini-3-pro. Status: 200.", **{
            "session.id": "g1", "gen_ai.provider.name": "gcp.vertex_ai", **attributes})

    use = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": '{"path":"."}'}
    answer = [message_of(text("Hel"), role="system", finish_reason="stop"), message_of(text("lo."), use, role="system",
                                                                                       finish_reason="length")]
    done = {"type": "tool_call_response", "id": "c1", "response": "a.py"}
    history = [message_of(text("go"), role="user"), message_of(text("Hello."), use, role="system"),
               message_of(done, role="user")]
    rows = [of_js("gemini_cli.config"), details("request details"),
            details("details", **{"gen_ai.input.messages": json.dumps(history[:1]), "gen_ai.response.id": "r1",
                                  "gen_ai.response.finish_reasons": ["stop", "length"],
                                  "gen_ai.output.messages": json.dumps(answer)}),
            details("details", **{"gen_ai.input.messages": json.dumps(history), "gen_ai.response.id": "r2",
                                  "gen_ai.output.messages": json.dumps([message_of(text("One file."), role="system",
                                                                                   finish_reason="stop")])})]
    seen = show("\n".join(json.dumps(row, indent=2) for row in rows), tmp_path)
    assert (texts(seen), stops(seen)) == (["Hello.", "One file."], ["max_tokens", "end_turn"])
    assert [verdict.admission.value for verdict in seen.responses[0].verdicts] == ["held"]
    assert [part.text for part in seen.responses[1].exchange.request.messages[0].parts] == ["a.py"]
    assert "log records that are no part of an answer of a model: 2" in notices(seen)


# -- As Jaeger and Tempo export them, and as lists ---------------------------------------------------------------------


def jaeger(number: int, tags: Row, parent: str = "", *logs: Row) -> Row:
    def fields(held: Row) -> list[Row]:
        return [{"key": key, "type": "int64" if type(each) is int else "string", "value": each}
                for key, each in held.items()]

    above = [{"refType": "CHILD_OF", "traceID": "a1", "spanID": parent}] if parent else []
    return {"traceID": "a1", "spanID": f"b{number}", "operationName": "chat", "references": above,
            "startTime": 1770000000005000 + number, "duration": 5, "tags": fields(tags), "processID": "p1",
            "logs": [{"timestamp": 1770000000005000, "fields": fields(log)} for log in logs]}


def test_the_traces_that_jaeger_exports(tmp_path):
    held = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
            "gen_ai.response.finish_reasons": '["length"]', "gen_ai.usage.output_tokens": 7, "span.kind": "client"}
    message = json.dumps({"role": "assistant", "tool_calls": [call('{"pa')]})
    log = {"event": CHOICE, "index": 0, "finish_reason": "length", "message": message}
    agent = jaeger(1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c1"})
    failed = jaeger(3, {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m",
                        "otel.status_code": "ERROR", "otel.status_description": "overloaded"}, "b1")
    export = {"data": [{"traceID": "a1", "spans": [failed, jaeger(2, held, "b1", log), agent], "processes": {}}]}
    seen = show(json.dumps(export), tmp_path)
    assert (stops(seen), words(seen)) == (["max_tokens", "error"], ["ERROR"])
    first, second = (facts.exchange for facts in seen.responses)
    assert (first.response.usage.output_tokens, first.started[:19]) == (7, "2026-02-02T02:40:00")
    (verdict,) = seen.responses[0].verdicts
    assert (verdict.call.arguments, verdict.admission.value) == ('{"pa', "held")
    assert second.response.error.message == "overloaded"
    assert show(json.dumps({"data": [{"traceID": "a1"}]}), tmp_path).responses == ()


def test_the_trace_that_tempo_exports_and_a_list_of_spans(tmp_path):
    one = span(1, chat([message_of(text("Hi."))]))
    assert texts(show(json.dumps({"batches": [{"resource": {}, "scopeSpans": [{"spans": [one]}]}]}), tmp_path)) == [
        "Hi."]
    other = '{"batches": [{"id": "gen_ai.x"}]}'
    assert "no session format that is known" in str(show(other, tmp_path).inputs[0].error)
    held = {"gen_ai.system": "openai", "gen_ai.request.model": "m", "ai.response.text": "Hi.",
            "ai.response.finishReason": "length", "ai.operationId": "ai.streamText.doStream"}
    listed = [{"name": "ai.streamText.doStream", "spanContext": {"traceId": "t", "spanId": key}, "attributes": held}
              for key in ("b1", "b2")]
    seen = show(json.dumps(listed, indent=1), tmp_path)
    assert (texts(seen), stops(seen)) == (["Hi.", "Hi."], ["max_tokens", "max_tokens"])
    held["ai.response.object"] = held.pop("ai.response.text")  # of generateObject
    assert texts(show(json.dumps(listed), tmp_path)) == ["Hi.", "Hi."]


# -- Semantic Kernel and the Azure SDKs --------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["chat.completions", "chat.streaming_completions", "text.completions",
                                       "text.streaming_completions"])
def test_the_operations_words_and_counts_of_semantic_kernel(operation, tmp_path):
    held = {"gen_ai.operation.name": operation, "gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.finish_reason": "FinishReason.LENGTH", "gen_ai.response.prompt_tokens": 16,
            "gen_ai.response.completion_tokens": 28}
    event = {"name": "gen_ai.content.completion",
             "attributes": pairs({"gen_ai.completion": json.dumps([{"role": "assistant", "content": "The sky"}])})}
    seen = show(trace_of(held, event), tmp_path)
    assert (texts(seen), stops(seen)) == (["The sky"], ["max_tokens"])
    usage = seen.responses[0].exchange.response.usage
    assert (usage.input_tokens, usage.output_tokens) == (16, 28)


def test_the_events_of_a_span_whose_body_is_the_json_of_one_attribute(tmp_path):
    def event(name: str, body: Row) -> Row:
        return {"name": name, "attributes": pairs({"gen_ai.system": "az.ai.inference",
                                                   "gen_ai.event.content": json.dumps(body)})}

    held = {"gen_ai.operation.name": "chat", "gen_ai.system": "az.ai.inference", "gen_ai.request.model": "m"}
    events = [event(USER, {"role": "user", "content": "go"}), event(CHOICE, choice(None, "length", 0, call('{"pa')))]
    seen = show(trace_of(held, *events), tmp_path)
    assert (stops(seen), words(seen)) == (["max_tokens"], ["CALL HELD"])
    assert seen.responses[0].exchange.request.messages[0].text == "go"


def test_a_thought_of_gemini_is_no_text(tmp_path):
    parts = [{"text": "Let me think.", "thought": True}, {"text": "Hi."}]
    held = chat([{"role": "model", "content": {"parts": parts}}])
    seen = show(trace_of(held), tmp_path)
    (facts,) = seen.responses
    assert (facts.exchange.response.text, facts.exchange.response.reasoning_content) == ("Hi.", "Let me think.")


def test_the_same_id_of_a_response_in_another_trace_is_another_answer(tmp_path):
    """Ollama takes its ids from a thousand numbers, so one trace must not get the answer of another."""
    wordless = {"gen_ai.operation.name": "chat", "gen_ai.response.id": "chatcmpl-7"}
    calls = {"gen_ai.response.id": "chatcmpl-7", "gen_ai.response.finish_reasons": ["tool_calls"],
             "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [
                 {"type": "tool_call", "id": "call_1", "name": "ls", "arguments": "{}"}]}])}
    other, third = (record(DETAILS, None, number, at="s9", trace=f"t{number}", **calls) for number in (8, 9))
    seen = show(both([span(1, wordless)], other, third), tmp_path)
    assert [len(facts.verdicts) for facts in seen.responses] == [0, 1, 1]
    (one,) = show(both([span(1, wordless)], record(DETAILS, None, 8, at="s9", **calls)), tmp_path).responses
    assert len(one.verdicts) == 1, "it is of the same trace"


def test_two_choices_with_plain_texts_are_not_joined(tmp_path):
    seen = show(logs(record(CHOICE, choice("One.", None)), record(CHOICE, choice("Two.", "stop", 1), 2)), tmp_path)
    assert texts(seen) == ["One."]
