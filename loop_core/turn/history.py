"""Builds the message history of the next request: adds responses, and writes the messages that ask a model to continue.

The history is append-only, so that a provider's prompt cache stays valid. A held call never enters the history, neither
as a call nor inside an opaque block. Strict backends refuse invalid arguments, calls without results and empty
assistant messages, so only the text and the thinking of the response remain, or nothing. This module checks the stop
reason itself and does not rely on another module to have removed a call (the second guard of BotNexus PR 1676).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loop_core.formats import format_entry
from loop_core.judge import gate
from loop_core.judge.arguments import is_phantom
from loop_core.judge.gate import NAMELESS, REMEDY, Admission, Verdict
from loop_core.turn.continuation import AGAIN, EMPTY, HINT_POINTS, QUOTE_MARKS, Method, quote_request, split_half
from loop_core.turn.seam import ANCHOR_CHARS
from loop_core.values import (
    FINISHED,
    CallKind,
    ChatResponse,
    Message,
    MessagePart,
    ReasoningPart,
    Role,
    Stop,
    TextPart,
    ToolCall,
    ToolResultPart,
)


class Ability(NamedTuple):
    """The methods of continuation that a server supports."""

    prefill: bool = False
    """Whether the server continues an assistant message that ends the request."""
    echoes: bool | None = None
    """Whether the server repeats an assistant message that it continues in its answer; None if unknown."""
    system_hint: bool = True
    """Whether the history may end with a system message."""


def default_ability(api: str) -> Ability:
    """The methods that every server of a format supports; used if nothing is known about this server."""
    return Ability(system_hint=format_entry(api).late_system)


def assistant_message(
    response: ChatResponse, verdicts: Sequence[Verdict], text: str | None, word: Stop = Stop.UNKNOWN
) -> Message | None:
    """The response as a message of the history; None if no part of it may be sent back.

    `verdicts` are the calls whose results follow, ready or rejected; every other call is removed, one without a name
    too. All calls are removed unless the effective `word` is `tool_call`. Opaque blocks and provider-run calls go back
    only with a response that ended whole. `text` is the message's text if it is more than this response's own, as after
    a prefill.
    """
    # A call without a name cannot be sent back: every format requires the name of the function.
    stay = [v for v in verdicts if v.admission is not Admission.HELD and v.call.name] if word is Stop.TOOL_CALL else []
    kept_ids = {id(v.call) for v in stay}
    real = [call for call in response.tool_calls if not is_phantom(call)]
    # An opaque block (encrypted reasoning, a server's tool run) may contain or sign a cut call, which nobody can check.
    # It goes back only if nothing of the response was left out.
    whole = word in FINISHED and all(id(call) in kept_ids for call in real)
    parts: list[MessagePart] = []
    for part in response.parts:
        if type(part) is ToolCall and part.kind is not CallKind.SERVER:
            if id(part) in kept_ids:
                parts.append(_with_arguments(part))
        # Readable thinking goes back even from a cut response: Anthropic requires it before a call, and a prefill has
        # to begin with it.
        elif type(part) is TextPart or whole or (type(part) is ReasoningPart and part.text):
            parts.append(part)
    if text is not None and text != (response.text or ""):
        parts = _with_text(parts, text)
    return _message(parts, response.api)


def echo_message(response: ChatResponse, text: str | None = None) -> tuple[Message | None, str]:
    """Returns a paused response to be sent back, without the white space at its end, and that white space; None if
    there is nothing to send. Calls for the client are left out, since a pause authorises none of them and a provider
    refuses a call without its result. Calls that the provider runs stay."""
    parts: list[MessagePart] = [p for p in response.parts if type(p) is not ToolCall or p.kind is CallKind.SERVER]
    if text is not None and text != (response.text or ""):
        parts = _with_text(parts, text)
    message = _message(parts, response.api)
    if message is None or type(last := message.parts[-1]) is not TextPart:
        return message, ""
    # Such a request cannot be distinguished from one with a prefill: see `prefill_message`.
    message = message._replace(parts=(*message.parts[:-1], last._replace(text=last.text.rstrip())))
    return message, _unsent_end(response.text or "" if text is None else text)


def _message(parts: Sequence[MessagePart], api: str) -> Message | None:
    """The parts of an answer as a message that strict backends accept: a blank text block joins the text before it, or
    is left out, and so is half a surrogate pair at the end of a cut text."""
    kept_parts: list[MessagePart] = []
    for part in parts:
        if isinstance(part, (TextPart, ReasoningPart)) and (text := whole_characters(part.text)) != part.text:
            part = part._replace(text=text)
        # Anthropic refuses a text block that is empty or all white space. Joined to the text before it, nothing is
        # lost.
        if type(part) is not TextPart or part.text.strip():
            kept_parts.append(part)
        elif kept_parts and type(before := kept_parts[-1]) is TextPart:
            kept_parts[-1] = before._replace(text=before.text + part.text)
    # Thinking alone is not a message: several backends refuse an assistant's message without content (hermes-agent
    # #99622).
    has_content = any(type(part) is not ReasoningPart for part in kept_parts)
    has_reasoning = any(type(part) is ReasoningPart for part in kept_parts)
    return Message(Role.ASSISTANT, tuple(kept_parts), api if has_reasoning else None) if has_content else None


def _with_text(parts: Sequence[MessagePart], text: str) -> list[MessagePart]:
    """The parts with `text` in place of their own text. Reasoning at their beginning stays before it."""
    others = [part for part in parts if type(part) is not TextPart]
    # With thinking on, Anthropic refuses a message that does not begin with it (aider#3820).
    place = next((i for i, part in enumerate(others) if type(part) is not ReasoningPart), len(others))
    return [*others[:place], TextPart(text), *others[place:]]


def _with_arguments(call: ToolCall) -> ToolCall:
    """The call with `{}` in place of missing arguments. An empty string is not JSON, and servers would refuse every
    later request with this history (DeepSeek-Reasonix#9566)."""
    if call.kind is CallKind.FUNCTION and not (call.arguments or "").strip():
        return call._replace(arguments="{}")
    return call


def hint_message(anchor: str = "", system: bool = True, mark: str = QUOTE_MARKS[0], again: bool = False) -> Message:
    """The message that asks the model to go on; with an anchor its last point asks for the quoted words first. `mark`
    names the tags around them; `again` says that the last message did not begin with them."""
    # The four points of ZeroClaw RFI 2309; the anchor replaces the last one, which forbids repeating text.
    points = list(HINT_POINTS)
    if anchor:
        points[-1:] = [*((AGAIN,) if again else ()), f"{quote_request(mark)}{anchor}</{mark}>"]
    return Message(Role.SYSTEM if system else Role.USER, (TextPart("\n".join(points)),))


def anchor_of_hint(message: Message) -> str:
    """The words that a hint of the engine asks the model to quote first; empty if it asks for none, or if this is no
    such hint."""
    mark = mark_of_hint(message)
    return message.text.rpartition(quote_request(mark))[2].removesuffix(f"</{mark}>") if mark else ""


def mark_of_hint(message: Message) -> str:
    """The name of the tags around these words; empty if the hint asks for none."""
    # A user may quote a hint, so only a message that begins with it counts.
    content = message.text
    if not content.startswith((HINT_POINTS[0], EMPTY)):
        return ""
    return next((mark for mark in QUOTE_MARKS if quote_request(mark) in content and content.endswith(f"</{mark}>")), "")


def is_hint(message: Message) -> bool:
    """Whether a message is the engine's hint to continue."""
    return message.text.startswith(HINT_POINTS[0])


def anchor_of(text: str) -> str:
    """The last characters of a text, as an anchor to quote; empty if there is no text. Half a surrogate pair cannot be
    quoted."""
    return whole_characters(text)[-ANCHOR_CHARS:]


def whole_characters(text: str) -> str:
    """The text without half a surrogate pair at either end: a server refuses JSON with a lone surrogate."""
    begin = "\udc00" <= text[:1] <= "\udfff"
    return split_half(text)[0][begin:]


def prefill_message(text: str) -> tuple[Message, str]:
    """The text so far as the beginning of the answer, and the white space that was stripped from its end."""
    # Anthropic refuses a prefill that ends in white space
    # (https://docs.anthropic.com/en/docs/build-with-claude/prompt-engineering/prefill-claudes-response).
    return Message(Role.ASSISTANT, (TextPart(whole_characters(text).rstrip()),)), _unsent_end(text)


def _unsent_end(text: str) -> str:
    """The white space at the end of a text, with half a surrogate pair behind it."""
    return text[len(split_half(text)[0].rstrip()) :]


def repair_message(verdicts: Sequence[Verdict], system: bool = True, siblings: Sequence[Verdict] = ()) -> Message:
    """The message that asks for every held call again. It describes each call so that the model can tell it from its
    `siblings`."""
    names = gate.held_names(verdicts, siblings)
    if len(names) > 1:
        listed = "\n".join(f"- {name}" for name in names)
        text = (
            f"{_CUT_BEFORE}its tool calls were complete, so none of them was run. "
            f"Emit each of these tool calls again, as a complete payload of its own:\n{listed}"
        )
    else:
        what = f"the tool call {names[0]}" if names else "the tool call"
        text = (
            f"{_CUT_BEFORE}{what} was complete, so nothing was run. Emit {what} again as one complete payload."
        )
    return Message(Role.SYSTEM if system else Role.USER, (TextPart(text),))


_CUT_BEFORE = "Your previous response was cut before "


def is_repair(message: Message) -> bool:
    """Whether a message is the engine's request for held calls."""
    return message.text.startswith(_CUT_BEFORE)


def repair_notice(verdicts: Sequence[Verdict], siblings: Sequence[Verdict]) -> str:
    """The notice for the operator when the repair budget is spent: every call that never arrived complete, by name."""
    names = gate.held_names(verdicts, siblings)
    if len(names) > 1:
        return f"The tool calls {', '.join(names)} were not completed and were not run; {REMEDY}."
    name = f" {names[0]}" if names else ""
    return f"The tool call{name} was not completed and was not run; {REMEDY}."


def nudge_message(anchor: str, system: bool, mark: str) -> Message:
    """The message that asks again after an answer without content; with an anchor it asks for the rest."""
    points = [EMPTY, "Answer the request now, or emit the tool call that it needs."]
    if anchor:
        points[1:] = [*HINT_POINTS[1:3], f"{quote_request(mark)}{anchor}</{mark}>"]
    return Message(Role.SYSTEM if system else Role.USER, (TextPart("\n".join(points)),))


def is_nudge(message: Message) -> bool:
    """Whether a message is the engine's request after an empty answer."""
    return message.text.startswith(EMPTY)


def not_run_note(
    verdicts: Sequence[Verdict], system: bool = True, siblings: Sequence[Verdict] = (), broken_off: bool = False
) -> Message | None:
    """The note to the model about calls without a result, because they were held or the turn ended; None if there are
    none. If the turn was aborted, a call that was not held may have begun, so the note does not claim that it did not
    run."""
    real = [v for v in verdicts if not is_phantom(v.call)]
    if not real:
        return None
    called = ", ".join(dict.fromkeys(v.call.name or "unnamed" for v in real))
    if any(v.admission is Admission.HELD for v in real):
        called = ", ".join(gate.held_names(real, siblings))
        text = f"Not run, since the response ended before it was complete: {called}. If it is still needed, {REMEDY}."
    elif broken_off:
        text = f"The turn was broken off before this had a result, and it may have run in part: {called}."
    else:
        text = f"Not run, since the turn was ended first: {called}."
    return Message(Role.SYSTEM if system else Role.USER, (TextPart(text),))


def nameless_note(verdicts: Sequence[Verdict], system: bool) -> Message | None:
    """The note to the model about calls without a name, which a history cannot hold; None if there are none."""
    calls = [v.call for v in verdicts if v.rule == NAMELESS]
    if not calls:
        return None
    sent = "; ".join((call.arguments or "").strip()[:_QUOTED_CHARS] for call in calls)
    text = f"Not run, since it names no tool: a call with the arguments {sent}. Make it again with the name of a tool."
    return Message(Role.SYSTEM if system else Role.USER, (TextPart(text),))


_QUOTED_CHARS = 500
"""The number of characters of the arguments that the note on a call without a name quotes."""


def tool_result(call: ToolCall, text: str, is_error: bool = False) -> ToolResultPart:
    """The result of a call, under the provider's id of the call."""
    return ToolResultPart(call.id, call.name, text, is_error)


def results_for(calls: Sequence[ToolCall], results: Sequence[ToolResultPart]) -> tuple[ToolResultPart, ...]:
    """Returns one result for every call, in order: the result with its id, else the next with its name, else an error.
    A result whose id no call has is matched by name, because repeated ids were changed when they were sent."""
    remaining = list(results)  # each result answers one call
    ids = {call.id for call in calls}
    ordered: list[ToolResultPart] = []
    # Ids first, names second: some servers give every call an empty or a repeated id (LM Studio #830, TGI), which
    # leaves only name and order.
    for call in calls:
        match = next((r for r in remaining if call.id is not None and r.call_id == call.id), None)
        match = match or next((r for r in remaining if (call.id is None or r.call_id not in ids or r.call_id is None)
                             and r.name in (call.name, None)), None)
        if match is None:
            # A call without a result makes the whole history invalid: OpenAI and Anthropic refuse it with a 400.
            match = tool_result(call, "No result came.", is_error=True)
        else:
            remaining.remove(match)
        ordered.append(match)
    return tuple(ordered)


def tool_message(results: Sequence[ToolResultPart]) -> Message:
    """The results of one batch as one message; a wire format that needs several messages splits it."""
    return Message(Role.TOOL, tuple(results))


def method_for(methods: Sequence[Method], text: str, ability: Ability) -> Method | None:
    """The first method that the server supports and the text permits; None if the policy never continues."""
    for method in methods:
        if method is Method.PREFILL and not (ability.prefill and text.strip()):
            continue
        # There are no words to quote, but a plain hint is possible.
        if method is Method.ANCHOR and not text.strip():
            return Method.HINT
        return method
    return None
