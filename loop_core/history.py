"""What the next request says: a response projected into history, and the messages that ask to go on.

Append-only, so that a provider's prompt cache stays warm. A held call never enters the history, neither as a call nor
inside an opaque block; strict backends refuse invalid arguments, calls without results and empty assistant messages,
so what is left of the response is text and thinking, or nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loop_core.gate import REMEDY, Admission, Verdict
from loop_core.seam import ANCHOR_CHARS, Method
from loop_core.values import (
    ChatResponse,
    Message,
    MessagePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolResultPart,
)

HINT_POINTS = (
    "Previous response was truncated by token limit.",
    "Continue exactly from where you left off.",
    "If you intended a tool call, emit one complete tool call payload only.",
    "Do not repeat already-sent text.",
)
"""The continuation hint of seed 000, its four points in order."""


@dataclass(frozen=True, slots=True)
class Ability:
    """What the server allows, as far as continuing goes."""

    prefill: bool = False
    """It continues an assistant message that ends the request."""
    echoes: bool | None = None
    """It repeats such a prefill in its answer; None where that is not known."""
    system_hint: bool = True
    """A system message may stand at the end of the history."""


def assistant(response: ChatResponse, verdicts: Sequence[Verdict], text: str | None = None) -> Message | None:
    """The response as history: its ready and rejected calls stay, held ones go; None where nothing would be left.

    `text` is what the message says where that is more than this response alone (a prefill that it goes on from).
    """
    kept_calls = {id(v.call) for v in verdicts if v.admission is not Admission.HELD}
    whole = all(v.admission is not Admission.HELD for v in verdicts)
    parts: list[MessagePart] = []
    for part in response.parts:
        if type(part) is ToolCall:
            if id(part) in kept_calls:
                parts.append(part)
        elif type(part) is TextPart:
            if part.text:
                parts.append(part)
        elif whole:
            parts.append(part)  # opaque blocks and thinking go back only with the response they belong to
        elif type(part) is ReasoningPart and part.text:
            parts.append(part)
    if text is not None and text != (response.text or ""):
        others = [part for part in parts if type(part) is not TextPart]
        place = next((i for i, part in enumerate(others) if type(part) is not ReasoningPart), len(others))
        parts = [*others[:place], *([TextPart(text)] if text else []), *others[place:]]
    has_content = any(type(part) is not ReasoningPart for part in parts)
    return Message(Role.ASSISTANT, tuple(parts)) if has_content else None


def echo(response: ChatResponse) -> Message:
    """A paused response, to be sent back as it was."""
    return Message(Role.ASSISTANT, response.parts)


def hint(anchor: str = "", system: bool = True) -> Message:
    """The message that asks to go on; with an anchor its last point asks for the quoted words first."""
    points = list(HINT_POINTS)
    if anchor:
        points[-1] = f"Begin by repeating exactly these last characters, then go on: {anchor!r}"
    return Message(Role.SYSTEM if system else Role.USER, (TextPart("\n".join(points)),))


def anchor_of(text: str) -> str:
    """The last characters of a text, as an anchor to quote; empty where there is no text."""
    return text[-ANCHOR_CHARS:]


def prefill(text: str) -> tuple[Message, str]:
    """The text so far as the beginning of the answer, and the white space that had to be stripped from its end."""
    sent = text.rstrip()
    return Message(Role.ASSISTANT, (TextPart(sent),)), text[len(sent) :]


def repair(verdicts: Sequence[Verdict], system: bool = True) -> Message:
    """The message that asks for held calls again, complete and nothing else."""
    names = [v.call.name for v in verdicts if v.admission is Admission.HELD and v.call.name]
    unique = list(dict.fromkeys(names))
    what = f"the tool call {unique[0]}" if len(unique) == 1 else f"the tool calls {', '.join(unique)}"
    if not unique:
        what = "the tool call"
    text = (
        f"Your previous response was cut before {what} was complete, so nothing was run. "
        f"Emit {what} again as one complete payload, and nothing else."
    )
    return Message(Role.SYSTEM if system else Role.USER, (TextPart(text),))


def repair_failed(verdicts: Sequence[Verdict]) -> str:
    """What the operator is told when the repair budget is spent."""
    held = next((v for v in verdicts if v.admission is Admission.HELD), None)
    name = f" {held.call.name}" if held and held.call.name else ""
    return f"The tool call{name} was not completed and was not run; {REMEDY}."


def not_run(verdicts: Sequence[Verdict], system: bool = True) -> Message | None:
    """What the model is told of calls that were held to the end; None where there are none."""
    names = list(dict.fromkeys(v.call.name or "unnamed" for v in verdicts if v.admission is Admission.HELD))
    if not names:
        return None
    called = ", ".join(names)
    text = f"Not run, since the response ended before it was complete: {called}. If it is still needed, {REMEDY}."
    return Message(Role.SYSTEM if system else Role.USER, (TextPart(text),))


def result(call: ToolCall, text: str, is_error: bool = False) -> ToolResultPart:
    """The result of a call, under the id that the provider gave it."""
    return ToolResultPart(call.id, call.name, text, is_error)


def tool_message(results: Sequence[ToolResultPart]) -> Message:
    """The results of one batch as one message; a wire format splits it where it must."""
    return Message(Role.TOOL, tuple(results))


def method_for(methods: Sequence[Method], text: str, ability: Ability) -> Method | None:
    """The first method that the server allows and the text permits; None where the policy never continues."""
    for method in methods:
        if method is Method.PREFILL and not (ability.prefill and text.strip()):
            continue
        if method is Method.ANCHOR and not text.strip():
            return Method.HINT
        return method
    return None
