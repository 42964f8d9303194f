"""Logs of AG2 and of AutoGen 0.2 (`runtime_logging`, SQLite): each request with its answer as Chat Completions.

The word is the provider's only for OpenAI's client. Other clients of AG2 write their own word: that of Anthropic writes
`stop` for every end except a call, also for a cut and for a refusal, so it is evidence only that calls beside it are
incomplete. A failed request has a text instead of the answer.
Source: ag2 0.10.5 `logger/sqlite_logger.py`, `oai/anthropic.py`; a log of 65 requests that it wrote over two APIs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from inspector.sessions.importers.database import snapshot
from inspector.sessions.importers.litellm import PayloadReader, new_pieces
from inspector.sessions.importers.span_messages import load_json
from inspector.sessions.reasons import provider_reason, table_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.ending_rules import infer
from inspector.sessions.transcripts.member_values import known_text, object_of
from loop_core.values import StopReason, ToolCall
from loop_core.wire.openai_chat.table import API, STOP_REASONS

CLIENTS = frozenset({"OpenAI", "AzureOpenAI"})
"""The classes of clients whose answers AG2 stores unchanged."""
ROWS = (
    "SELECT c.*, (SELECT json_group_array(DISTINCT o.class) FROM oai_clients o WHERE o.wrapper_id = c.wrapper_id "
    "AND o.session_id = c.session_id) AS classes FROM chat_completions c ORDER BY c.id"
)
"""The query for the requests, each with the classes of its agent's clients."""


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the database."""
    reader = _Requests(path, options)
    return reader.read_records(new_pieces(b"\n".join(_rows(path)), frozenset(), reader.earlier))


def _rows(path: str) -> Iterator[bytes]:
    """The requests in the form of LiteLLM's payloads."""
    with snapshot(path) as database:
        for row in database.execute(ROWS):
            request, response = object_of(load_json(row["request"])), load_json(row["response"])
            failed = known_text(object_of(response).get("response")) if "choices" not in object_of(response) else None
            yield json.dumps({
                "id": f"{row['invocation_id']}", "trace_id": f"{row['source_name']}", "model": request.get("model"),
                "messages": request.get("messages"), "model_parameters": request, "startTime": row["start_time"],
                "response": response if failed is None else None, "error_str": failed,
                "classes": load_json(row["classes"]), "call_type": "completion",
            }).encode()


class _Requests(PayloadReader):
    name, agent = "ag2", "AG2"
    unit, row_word = "row", ("a row", "rows")

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one request and its answer, with the source of its stop word."""
        after = super().take(line, lines, place)
        answer, classes = self.after[line.number].answer, line.value.get("classes")
        if answer is None or answer.word is None or answer.error is not None:
            return after
        if isinstance(classes, list) and classes and CLIENTS.issuperset(map(str, classes)):
            answer.stop = provider_reason(answer.word, answer.word_at, STOP_REASONS, API)
        elif answer.word == "stop":
            answer.stop = answer.word = None
            answer.parts = [part._replace(closed=False) if isinstance(part, ToolCall) else part
                            for part in answer.parts]
        else:
            answer.stop = table_reason(answer.word, STOP_REASONS, answer.word_at, "ag2.finish_reasons")
        return after

    def infer_end(self, answer: TranscriptAnswer) -> StopReason:
        """The stop reason of an answer whose word is no evidence, also by the cap of its request."""
        return infer(answer)
