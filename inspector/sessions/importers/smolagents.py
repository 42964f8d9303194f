"""Memories of smolagents as JSON: the list of `agent.memory.get_full_steps()` or `get_succinct_steps()`, and results of
`run(return_full_result=True)`, whose `steps` are that list.

A step has the answer of the model (`model_output_message`), and in it the object of the client library (`raw`) with the
provider's stop word; a streamed answer has no such object. Text that looks like JSON is parsed when the steps are
written, so that arguments are a text only if they are incomplete. A `CodeAgent` adds the end of its code block to a
text that lacks it, and runs the code. Source: smolagents 1.26 `memory.py`, `agents.py`, `models.py`; 47 memories that
it wrote.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions.importers.records import first_look, list_pieces
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace, any_text
from inspector.sessions.transcripts.chat_messages import ChatReader, command_call, pointer_at, take_calls, take_message
from inspector.sessions.transcripts.member_values import (
    cap_of,
    known_text,
    moment_text,
    object_of,
    objects_of,
    usage_in,
)
from inspector.sessions.transcripts.provider_answers import take_litellm_end, take_provider_word
from loop_core.values import At, ToolResultPart

FIELDS: Fields = {"": {"task": (str,), "model_output_message": (dict,), "tool_calls": (list,), "error": (dict,),
                       "observations": (str,), "code_action": (str,), "timing": (dict,), "token_usage": (dict,)}}
LISTS = ("steps", "messages")
"""The members of a result that may have its steps; they differ by release."""
STEPS = (frozenset({"task", "task_images"}), frozenset({"step_number", "model_output", "action_output"}))
"""Members of every task, and of every action."""
FAILED = frozenset({"AgentExecutionError", "AgentToolCallError", "AgentToolExecutionError"})
"""The errors of a step whose code or tool failed, or was refused."""
NO_STEPS_LEFT = "AgentMaxStepsError"
"""The error of a step with only the text of a last answer, for which no step was left."""
NO_ANSWER = "have no answer: the request failed or the user stopped it, and smolagents does not record which"
NO_LAST_ANSWER = "Error in generating final LLM output: "
"""The text before the error of a failed request for that last answer (`provide_final_answer`)."""
LITELLM = "ModelResponse"
"""The type of LiteLLM's answers, whose stop word may be its own."""
RAW = ("model_output_message", "raw")


def sniff(head: bytes, path: str) -> int:
    """Recognises a task or an action in a list, or in the list of a result."""
    first = first_look(head).first
    listed = next((first[name] for name in LISTS if name in first), None) if isinstance(first, dict) else first
    return 97 if any(members <= step.keys() for step in objects_of(listed)[:4] for members in STEPS) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of the memory."""
    lists = (list(list_pieces(data, *names)) for names in ((), *((name,) for name in LISTS)))
    return _Memory(path, options).read_records(next(filter(None, lists), []))


class _Memory(ChatReader):
    name, agent, fields = "smolagents", "smolagents", FIELDS
    unit, row_word = "step", ("a step", "steps")
    repairs = True

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        """Reads one step: a task, a plan, or an answer with the results of its calls."""
        value = line.value
        if "task" in value:
            return self.say(line, place, any_text(value.get("task")))
        if not ({"plan", "step_number"} & value.keys()):
            lines.count(next(iter(value), "step"), frozenset({"system_prompt"}))
            return place
        answer = self.answer(line, place)
        answer.started = moment_text(object_of(value.get("timing")).get("start_time"))
        at = answer.word_at = answer.take(line)
        error = object_of(value.get("error"))
        if value.get("model_output_message") is not None or "plan" in value:
            _take_answer(answer, value, line, at)
        elif error.get("type") == NO_STEPS_LEFT:
            _take_last(answer, value, at)
            why = f"smolagents ended the run: {any_text(error.get('message'))}"
            return self.say(line, TreePlace(answer), why, mark="stopped")
        else:  # the message of an answer is written when it is whole
            answer.unended = True
            self.remarks[NO_ANSWER] += 1
        return self._outcome(line, TreePlace(answer), error)

    def _outcome(self, line: TranscriptLine, place: TreePlace, error: dict[str, Any]) -> TreePlace:
        """Adds the results of the calls. Several calls have one text, which becomes the result of each."""
        value, calls = line.value, place.answer.calls if place.answer else []
        seen, why = known_text(value.get("observations")), known_text(error.get("message"))
        failed = why is not None and error.get("type") in FAILED and len(calls) == 1
        # Beside an error of code, there may be the output of the previous step's code.
        text = "\n".join(filter(None, (f"{error.get('type')}: {why}" if failed else None, seen)))
        if calls and text:
            place = self.say(line, place, "", tuple(ToolResultPart(call.id, None, text, failed) for call in calls))
        if why and not failed:
            place = self.say(line, place, why, own=True)
        return self.say(line, place, "final answer", mark="ended") if value.get("is_final_answer") is True else place


def _take_last(answer: TranscriptAnswer, value: dict[str, Any], at: At) -> None:
    """Reads the answer that smolagents requests when no step is left; its message is not stored."""
    text = any_text(value.get("action_output"))
    if text.startswith(NO_LAST_ANSWER):
        answer.fail(text.removeprefix(NO_LAST_ANSWER), pointer_at(at, "action_output"))
    else:
        answer.add_text(text)
    answer.usage = usage_in(object_of(value.get("token_usage")), "input_tokens", "output_tokens")


def _take_answer(answer: TranscriptAnswer, value: dict[str, Any], line: TranscriptLine, at: At) -> None:
    """Reads the parts of an answer, from the provider's object if there is one, and its counts and stop word."""
    message = object_of(value.get("model_output_message"))
    raw = object_of(message.get("raw"))
    sent = object_of(next(iter(objects_of(raw.get("choices"))), {}).get("message"))
    texts = (sent.get("content"), value.get("model_output"), message.get("content"), value.get("plan"))
    text = next((each for each in texts if isinstance(each, str)), any_text(message.get("content")))
    take_message(answer, {**sent, "content": text, "tool_calls": None}, line, at)
    # Not from `raw`: it has only the type of LiteLLM's calls, and none of those that smolagents found in the text.
    take_calls(answer, message.get("tool_calls"), line, at, "model_output_message", "tool_calls")
    code = known_text(value.get("code_action"))
    if code is not None:
        key = known_text(next(iter(objects_of(value.get("tool_calls"))), {}).get("id"))
        answer.parts.append(command_call(code, "python_interpreter", pointer_at(at, "code_action"))._replace(id=key))
    parameters = object_of(raw.get("completion_kwargs"))  # only for a local model
    answer.cap = cap_of(parameters, {"max_tokens": parameters.get("max_new_tokens")})
    if raw.get("choices"):
        take_litellm_end(answer, raw, None, at, *RAW)
    if raw.get("_type") != LITELLM:
        take_provider_word(answer, raw, at, *RAW)
    counts = object_of(message.get("token_usage")) or object_of(value.get("token_usage"))
    answer.usage = answer.usage or usage_in(counts, "input_tokens", "output_tokens")
