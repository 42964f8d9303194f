"""Sessions of OpenAI's Agents SDK: databases of `SQLiteSession` and `SQLAlchemySession`, with items of Responses; and
the lists of such items that an application stores for Agency Swarm, which is built on the SDK.

No stop word is stored. Items of other APIs than Responses always have the status `completed`; the provider's status
`incomplete` shows that the answer was cut, but not the cause, which may also be a filter. The arguments of a call are
the text that the model wrote, so that a cut is visible, and the SDK does not run a cut call; since 0.24 the result does
not state why. A failed run has the message of the user and no answer. Source: openai-agents 0.20 and 0.24
`memory/sqlite_session.py`, `tool.py`, `models/chatcmpl_converter.py`; 72 sessions that they wrote over two APIs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inspector.sessions.importers import SQLITE
from inspector.sessions.importers.codex_items import INCOMPLETE, item_text, take_part
from inspector.sessions.importers.database import snapshot
from inspector.sessions.importers.records import first_look, list_pieces, number_records, with_ids
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader
from inspector.sessions.transcripts.member_values import known_text, object_of, objects_of
from inspector.sessions.transcripts.provider_answers import take_api_word
from inspector.sessions.wordings import is_error
from loop_core.values import ToolResultPart
from loop_core.wire import wire

FIELDS: Fields = {"": {"type": (str,), "role": (str,), "content": (str, list), "arguments": (str,), "call_id": (str,),
                       "provider_data": (dict,)}}
RESPONSES = "openai_responses"
FAKE = "__fake_id__"
"""The id of every item of another API than Responses."""
PASSED = frozenset({"system", "developer", "item_reference", "compaction"})
"""The roles and types of items without a part of an exchange."""


def sniff(head: bytes, path: str) -> int:
    """Recognises a list of items that name the agent and the one that called it."""
    first = next(iter(objects_of(first_look(head).first)), {})
    return 97 if "callerAgent" in first and "agent" in first and ("type" in first or "role" in first) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer in the database, or in the list."""
    if data.startswith(SQLITE):
        return _Sessions(path, options).read_records(number_records(_rows(path)))
    return _Swarm(path, options).read_records(list_pieces(data))


def _rows(path: str) -> Iterator[bytes]:
    with snapshot(path) as database:
        for row in database.execute("SELECT session_id, created_at, message_data FROM agent_messages ORDER BY id"):
            yield with_ids(row["message_data"], session_id=row["session_id"], created_at=row["created_at"])


class _Sessions(ChatReader):
    name, agent, fields = "openai-agents", "the Agents SDK", FIELDS
    unit, row_word = "row", ("a row", "rows")  # without a key: the items of other APIs have the same id
    unanswered = "end a session with a message of the user, as a run that failed leaves it"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options)
        self.responses: dict[str, str | None] = {}
        """Session -> the id of the response with the model's last item, if the SDK stores it."""

    def session_of(self, value: dict[str, Any]) -> str:
        key = known_text(value.get("session_id")) or self.session
        self.titles[key] = key
        return key

    def is_fake(self, value: dict[str, Any]) -> bool:
        """Whether the id of an item is made up, as for all APIs but Responses."""
        return value.get("id") == FAKE

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one item: of the model, the result of a call, or a message."""
        value = line.value
        kind = known_text(value.get("type")) or ("message" if "role" in value else "")
        role = known_text(value.get("role")) if kind == "message" else "assistant"
        if kind.endswith("_output"):
            part = ToolResultPart(known_text(value.get("call_id")), None, any_text(value.get("output")))
            self.results(line, place, part._replace(is_error=is_error(part)))
        elif role == "user":
            self.say(line, place, item_text(value.get("content")))
        elif role != "assistant" or kind in PASSED or not kind:
            lines.count(role if kind == "message" else kind, PASSED)
        else:
            self._answer(line, kind)
        return self.here

    def _answer(self, line: TranscriptLine, kind: str) -> None:
        """Reads an item of the model: consecutive items are one answer, unless they are of different responses."""
        value = line.value
        source, above = object_of(value.get("provider_data")), self.here.right_above
        response = known_text(source.get("response_id"))
        api = None if self.is_fake(value) else RESPONSES
        answer = above if above is not None and response == self.responses.get(self.session) else self.answer(
            line, self.here, model=source.get("model"), api=api, begin=value.get("created_at", value.get("timestamp")))
        self.responses[self.session] = response
        take_part(answer, kind, value, line)
        if value.get("status") == INCOMPLETE:
            answer.named_api = RESPONSES
            take_api_word(answer, INCOMPLETE, answer.word_at, wire(RESPONSES).stop_reasons)


class _Swarm(_Sessions):
    """Reads the items of Agency Swarm; each pair of an agent and its caller, null for the user, has a thread. Source:
    agency-swarm 1.11 `messages/message_formatter.py`, `utils/thread.py`; 30 files that it wrote."""

    agent, unit = "Agency Swarm", "item"

    def session_of(self, value: dict[str, Any]) -> str:
        caller, agent = known_text(value.get("callerAgent")), known_text(value.get("agent"))
        key = f"{caller or 'user'} › {agent or 'agent'}"
        self.titles[key] = key
        return key

    def is_fake(self, value: dict[str, Any]) -> bool:
        """It replaces these ids by the id of the call, or by that of the agent's run with a number."""
        key, run = value.get("id"), known_text(value.get("agent_run_id"))
        return super().is_fake(value) or f"_{run}_" in str(key) or key == value.get("call_id", "")
