"""Trajectories of Trae Agent: an object with the requests (`llm_interactions`) and the steps of its run.

A request has the messages since the one before it, and its answer has the provider's own word; OpenAI's is the status
of Responses, without a reason. Arguments are parsed: an answer with a call that is not JSON is not stored, only the
error of its step. Ollama's answers have no word. Source: bytedance/trae-agent `utils/trajectory_recorder.py`,
`utils/llm_clients`, `agent/base_agent.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspector.sessions import redact
from inspector.sessions.importers.records import elements, first_look, number_records, whole_object
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader, pointer_at, take_call
from inspector.sessions.transcripts.member_values import known_text, numbered_objects, object_of, objects_of, usage_in
from inspector.sessions.transcripts.provider_answers import take_api_word
from loop_core.values import ToolResultPart
from loop_core.wire import wire

APIS: Mapping[str, str] = {"anthropic": "anthropic_messages", "openai": "openai_responses", "google": "gemini_generate"}
"""Provider -> the wire format of its answers; of any other provider it is Chat Completions."""
COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""The counts of an answer; all are 0 if there are none."""
FIELDS: Fields = {"": {"input_messages": (list,), "response": (dict,), "provider": (str,), "tool_results": (list,),
                       "error": (str,)},
                  "response": {"content": (str,), "finish_reason": (str,), "tool_calls": (list,), "usage": (dict,)}}


def sniff(head: bytes, path: str) -> int:
    """Recognises the members that every trajectory begins with."""
    first = object_of(first_look(head).first)
    listed = isinstance(first.get("llm_interactions"), list)
    return 96 if listed and {"task", "provider", "max_steps"} <= first.keys() else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every request, and the last step, whose results or failed request are nowhere else."""
    reader = _Run(path, options)
    reader.title = redact.text(known_text(whole_object(data).get("task")) or "")[:80]
    last = list(elements(data, "agent_steps"))[-1:]
    return reader.read_records(number_records([*elements(data, "llm_interactions"), *last]))


class _Run(ChatReader):
    name, agent, fields = "trae", "Trae Agent", FIELDS
    unit, row_word, repairs = "entry", ("an entry", "entries"), True

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads a request with its answer, or the last step."""
        value, response = line.value, object_of(line.value.get("response"))
        step = "response" not in value
        # The messages of a step are those of its request only if that failed; else they are of the next request.
        why = known_text(value.get("error")) if step else None
        for message in objects_of(value.get("input_messages" if why is None else "llm_messages")):
            place = self._say(line, place, message)
        if step:
            place = self.results(line, place, *map(_result, objects_of(value.get("tool_results"))))
            return (why and self.failed_request(line, place, why, after_results=True)) or place
        api = APIS.get(known_text(value.get("provider")) or "", "openai_chat")
        answer = self.answer(line, place, model=known_text(response.get("model")) or value.get("model"), api=api,
                             begin=value.get("timestamp"))
        at = answer.word_at = answer.take(line)
        answer.add_text(response.get("content"))
        for number, call in numbered_objects(response.get("tool_calls")):
            take_call(answer, call, line, at, "response", "tool_calls", number, key="call_id")
        usage = usage_in(object_of(response.get("usage")), *COUNTS)
        answer.usage = usage if usage and (usage.input_tokens or usage.output_tokens) else None
        word = known_text(response.get("finish_reason"))
        if word is not None and word.lower() != "unknown":  # Trae's word if Google sends none
            take_api_word(answer, word, pointer_at(at, "response", "finish_reason"), wire(api).stop_reasons)
        return TreePlace(answer)

    def _say(self, line: TranscriptLine, place: TreePlace, message: dict[str, Any]) -> TreePlace:
        if result := object_of(message.get("tool_result")):
            return self.results(line, place, _result(result))
        text, role = known_text(message.get("content")), message.get("role")
        if text is None or role == "system":
            return place
        # Trae adds its remarks about failed calls as messages of the model, and its reminders after an answer.
        return self.say(line, place, text, own=role == "assistant" or place.answer is not None)


def _result(result: dict[str, Any]) -> ToolResultPart:
    text = "\n".join(filter(None, (known_text(result.get("result")), known_text(result.get("error")))))
    return ToolResultPart(known_text(result.get("call_id")), known_text(result.get("name")), text,
                          result.get("success") is False)
