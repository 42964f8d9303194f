"""The tool-call gate: which calls may run, which are held, which are rejected.

There are three verdicts. `ready` needs the effective reason, a closed block, strict JSON and the schema. A `held` call
is incomplete, or not authorised by the reason; it holds the whole batch, because a truncated batch is unfinished as a
whole. A `rejected` call is complete and cleanly ended but refused: by its schema, because its tool is not declared,
because the request forbade calls or allowed those of another tool alone, or because it has no name. Only that call is
answered with an error.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from loop_core.judge import arguments
from loop_core.judge.arguments import Arguments, ArgumentShape
from loop_core.judge.classify import Judgement
from loop_core.values import ArgsForm, CallKind, ChatResponse, Request, Stop, StopReason, Tool, ToolCall, tools_by_name

REMEDY = "raise the output limit, split the work into smaller parts, or simplify the request"
"""The advice about a call that the output budget cut (Zoo Code's analysis, fix 3)."""


class Admission(StrEnum):
    """The gate's three verdicts."""

    READY = "ready"
    """The call may run."""
    HELD = "held"
    """The call is incomplete, or its response's stop reason does not authorise it: it must not run."""
    REJECTED = "rejected"
    """The call is complete and refused, for example by its tool's schema: it must not run."""


class Verdict(NamedTuple):
    """The gate's decision on one tool call. Run a call only if `admission` is `ready`, and with `arguments`, never with
    `call.arguments`, which may be cut."""

    call: ToolCall
    """The call as it arrived."""
    admission: Admission
    """The decision: `ready`, `held` or `rejected`."""
    rule: str
    """The dotted name of the rule that decided, such as gate.incomplete."""
    why: str
    """The reason for the decision, for people."""
    problems: tuple[str, ...] = ()
    """The reasons for a rejection, such as each violation of the schema; empty unless the call is rejected."""

    @property
    def arguments(self) -> dict[str, Any] | str | None:
        """The parsed object, or the text of a free-form call; None unless ready. Parsed on access, because a recording
        has thousands of calls that are never run."""
        if self.admission is not Admission.READY:
            return None
        if self.call.kind is CallKind.CUSTOM:
            return self.call.arguments or ""
        return arguments.parse_call(self.call).value or {}


WHY_REASON: dict[Stop, str] = {
    Stop.MAX_TOKENS: f"cut by the output limit; {REMEDY}",
    Stop.CONTEXT_WINDOW_EXCEEDED: "the context window is full; shorten the history",
    Stop.SAFETY_BLOCKED: "the response was filtered or declined",
    Stop.CANCELLED: "the response was cancelled",
    Stop.UNKNOWN: "no known stop reason says that the answer is complete",
    Stop.PAUSED: "the response is paused, not finished",
    Stop.INTERRUPTED: "the answer ended without a stop reason",
    Stop.MALFORMED_TOOL_CALL: "the batch contains a malformed call",
    Stop.ERROR: "the provider reported an error",
    Stop.END_TURN: "the response ended without asking for tools",
}
"""Stop reason -> why it does not authorise a call, for every reason except `tool_call`."""


def admit(
    call: ToolCall, judgement: Judgement, tool: Tool | None = None, declared: Collection[str] = (),
    choice: str | None = None,
) -> Verdict:
    """The verdict on one call, without regard to the other calls of its response; `admit_all` adds the rule of the
    batch. `declared` are the names of the request's tools, empty if unknown, and `choice` is its tool choice."""
    if arguments.is_phantom(call):
        return Verdict(call, Admission.HELD, "gate.phantom", "the call has neither a name nor arguments")
    if call.other_arguments is not None:
        return Verdict(call, Admission.HELD, "gate.contradiction",
                       "the provider sent two different texts of its arguments, and nothing shows which is meant")
    # A cut without a stop word (Zoo Code's analysis).
    reason = Stop.MAX_TOKENS if judgement.cap_reached else judgement.stop.normalized
    reading = arguments.parse_input(call, tool)
    # Checked before the reason, because the place of a cut helps more than the stop word.
    shape_problem = _incomplete(call, reading, tool, judgement.stop)
    if shape_problem is not None:
        why = f"{shape_problem}; {REMEDY}" if reason is Stop.MAX_TOKENS else shape_problem
        return Verdict(call, Admission.HELD, "gate.incomplete", why)
    if reason is not Stop.TOOL_CALL:
        return Verdict(call, Admission.HELD, "gate.reason", WHY_REASON[reason])
    refused = _refusal(call, declared, choice, tool)
    if refused is not None:
        rule, why = refused
        return Verdict(call, Admission.REJECTED, rule, why, problems=(why,))
    if call.kind is CallKind.CUSTOM:
        return Verdict(call, Admission.READY, "gate.ready", "closed, and the response ended cleanly")
    problems = arguments.schema_problems(tool, reading.value or {})
    if problems:
        return Verdict(call, Admission.REJECTED, SCHEMA, "; ".join(problems), problems=problems)
    return Verdict(call, Admission.READY, "gate.ready", CHECKED if arguments.is_usable(tool) else _UNCHECKED)


SCHEMA = "gate.schema"
"""The rule under which a call is rejected by the schema of its tool."""
# The reasons of nearly all verdicts: two strings that all calls share.
CHECKED, _UNCHECKED = (f"closed and complete; {why}" for why in ("its schema accepts it", "no usable schema is known"))


def _refusal(
    call: ToolCall, declared: Collection[str], choice: str | None, tool: Tool | None
) -> tuple[str, str] | None:
    """Returns the rule and the reason by which a complete call may not run; None if it may. It has no name, an
    undeclared tool, or the request forbids it."""
    if not call.name:
        return NAMELESS, "the call has no name"
    if choice == "none":
        return "gate.forbidden", "the request forbids tool calls (tool_choice none)"
    if call.kind is CallKind.CUSTOM and call.form is ArgsForm.OBJECT:
        return None  # a provider's tool that the client runs; the engine names its calls
    if declared and call.name not in declared:
        return "gate.unknown_tool", f"no tool {call.name!r} is declared; there are {', '.join(sorted(declared))}"
    # Only for tools that the client runs: the choice may name a provider's tool by its kind or server.
    only = choice.removeprefix("tool:") if choice is not None and choice.startswith("tool:") else ""
    if only and only in declared and call.name != only:
        return "gate.forbidden", f"the request allows only calls of {only!r} (tool_choice)"
    if tool is not None and not tool.allowed:
        return "gate.forbidden", f"{call.name!r} is not among the tools that the request allows (tool_choice)"
    return None


LOADING_TOOLS = frozenset({"tool_search"})
"""The tools with which a model finds further tools, which are declared later (Responses)."""
NAMELESS = "gate.nameless"
"""The rule under which a call without a name is rejected. A history cannot hold such a call, so a message reports
it."""


def declared_names(tools: Sequence[Tool]) -> frozenset[str]:
    """The names that a call may have; empty if the request declares no tools, or loads some during the response."""
    if any(tool.name in LOADING_TOOLS for tool in tools):
        return frozenset()
    return frozenset(tool.name for tool in tools if tool.kind is not CallKind.SERVER)


def admit_all(
    calls: Sequence[ToolCall], judgement: Judgement, tools: Sequence[Tool] = (), choice: str | None = None
) -> tuple[Verdict, ...]:
    """The verdicts on all calls of a response: one held call holds the others; a rejected one does not."""
    if not calls:
        return ()
    named_tools, declared = tools_by_name(tools), declared_names(tools)
    verdicts = [admit(call, judgement, named_tools.get(call.name), declared, choice) for call in calls]
    # A phantom is something that a server appends to whole answers, so it holds nothing else.
    blocking = next((v for v in verdicts if v.admission is Admission.HELD and v.rule != "gate.phantom"), None)
    if blocking is None:
        return tuple(verdicts)
    why = f"its batch is unfinished: {arguments.name_of(blocking.call)} is held"
    return tuple(
        verdict if verdict.admission is Admission.HELD else Verdict(verdict.call, Admission.HELD, "gate.batch", why)
        for verdict in verdicts
    )


def admit_response(response: ChatResponse, judgement: Judgement, request: Request | None) -> tuple[Verdict, ...]:
    """The verdicts on all calls of a response, under the tools and the tool choice of the request that it answers."""
    if request is None:
        return admit_all(response.tool_calls, judgement)
    return admit_all(response.tool_calls, judgement, request.tools, request.tool_choice)


def _incomplete(call: ToolCall, reading: Arguments, tool: Tool | None, stop: StopReason) -> str | None:
    # Without a stop word, formats that close calls by it leave them open: then the reason holds the call.
    whole_without_word = stop.normalized is Stop.UNKNOWN and reading.shape is ArgumentShape.COMPLETE
    if not call.closed and not whole_without_word:
        if call.form is ArgsForm.OBJECT and reading.shape is ArgumentShape.COMPLETE:
            return (f"the answer ended in it ({stop.normalized.value}), and arguments that come already parsed look "
                    "complete even if they were cut")
        reason = f"the call was never closed ({_describe_parsing(reading)})"
        return reason if call.kind is CallKind.FUNCTION else "never closed"
    if call.kind is CallKind.CUSTOM:
        return "no input was sent" if call.arguments is None else None
    if reading.shape is ArgumentShape.COMPLETE:
        return None
    if reading.shape.is_missing:
        if arguments.means_empty_object(call, tool):
            return None
        return f"{reading.problem}, and the tool is not known to need none"
    return _describe_parsing(reading)


def _describe_parsing(reading: Arguments) -> str:
    if reading.shape is ArgumentShape.COMPLETE:
        return "its arguments parse"
    if reading.shape.is_missing:
        return reading.problem
    if reading.shape is ArgumentShape.NOT_OBJECT:  # the parser read them to their end
        return f"the arguments are {reading.in_words}"
    where = f"the parser stopped at character {reading.stopped_at}"
    return f"the arguments are {reading.in_words}: {where}: {reading.problem}"


# -- Distinguishing held calls: how they are named to the model, and which of them came again ------------------------
# A call is known by its tool and, where the batch holds others of the same tool, by the arguments in which they differ.
# Only arguments that had arrived whole count: the member after the last comma of cut ones may be incomplete.


LONGEST_MARK = 200
"""The largest length in characters of an argument that distinguishes a call. A longer text is not a name, and may be
worded differently when the call is sent again."""
SHOWN_CHARS = 80
"""The number of characters of an argument in the name of a held call, which the model reads."""

DistinctArguments = Mapping[str, Any]
"""Argument -> value, for the arguments that distinguish a call from others of its tool."""


def held_calls(verdicts: Sequence[Verdict]) -> tuple[ToolCall, ...]:
    """The calls that are held, without phantoms and repetitions."""
    found: dict[tuple[str, str | None], ToolCall] = {}
    for verdict in verdicts:
        call = verdict.call
        if verdict.admission is Admission.HELD and not arguments.is_phantom(call):
            found.setdefault((call.name, call.arguments), call)
    return tuple(found.values())


def held_names(verdicts: Sequence[Verdict], siblings: Sequence[Verdict] = ()) -> tuple[str, ...]:
    """The name of each held call for the model: its tool, and the arguments that distinguish it from the other calls.
    `siblings` are calls of the same batch that were received again since."""
    calls = held_calls(verdicts)
    marks = _marks(calls, held_calls(siblings))
    return tuple(dict.fromkeys(_name(call, own) for call, own in zip(calls, marks, strict=True)))


def missing_calls(
    verdicts: Sequence[Verdict], received: Iterable[ToolCall], siblings: Sequence[Verdict] = ()
) -> tuple[Verdict, ...]:
    """The held calls that were not sent again. Calls without a name are left out, because they cannot be matched."""
    calls = held_calls(verdicts)
    # The most precisely named first: a call without marks matches any call of its tool, and could take another's.
    marked = sorted(zip(calls, _marks(calls, held_calls(siblings)), strict=True), key=lambda each: -len(each[1]))
    answers = [(other.name, arguments.parse(other.arguments).value or {}) for other in received]
    alike: dict[tuple[str, ...], dict[tuple[str, ...], Iterator[int]]] = {}
    taken: set[int] = set()
    lost: set[int] = set()
    for call, marks in marked:
        named = call.name, *sorted(marks)
        if named not in alike:
            alike[named] = _places_by_values(answers, named)
        places = alike[named].get(tuple([_text(marks[name]) for name in named[1:]]), iter(()))
        fits = next((place for place in places if place not in taken), None)
        if fits is not None:
            taken.add(fits)
        elif call.name:
            lost.add(id(call))
    return tuple(verdict for verdict in verdicts if id(verdict.call) in lost)


def _marks(calls: Sequence[ToolCall], siblings: Sequence[ToolCall]) -> list[DistinctArguments]:
    """For each call the arguments in which it differs from another call of its tool."""
    every = [(call, _whole_arguments(call)) for call in (*calls, *siblings)]
    of_tool = Counter(call.name for call, _ in every)
    alike = Counter((call.name, name, _text(value)) for call, own in every for name, value in own.items())
    return [{name: value for name, value in own.items() if alike[call.name, name, _text(value)] < of_tool[call.name]}
            for call, own in every[: len(calls)]]


def _places_by_values(
    answers: Sequence[tuple[str, Mapping[str, Any]]], named: tuple[str, ...]
) -> dict[tuple[str, ...], Iterator[int]]:
    """Values of the named arguments -> the indices of the tool's calls with these values, in order."""
    tool, *names = named
    found: dict[tuple[str, ...], list[int]] = {}
    for place, (name, value) in enumerate(answers):
        if name == tool and value.keys() >= set(names):
            found.setdefault(tuple([_text(value[each]) for each in names]), []).append(place)
    return {values: iter(places) for values, places in found.items()}


def _whole_arguments(call: ToolCall) -> dict[str, Any]:
    """The short arguments of simple types that had arrived whole."""
    if call.kind is not CallKind.FUNCTION:
        return {}
    reading = arguments.parse(call.arguments)
    value = reading.value
    if reading.shape is ArgumentShape.CUT:
        value = arguments.parse(_until_last_comma(call.arguments or "")).value
    return {name: each for name, each in (value or {}).items()
            if isinstance(each, (str, int, float)) and len(str(each)) <= LONGEST_MARK}


def _until_last_comma(raw: str) -> str:
    """The members before the last comma of the outermost object, as an object."""
    depth, inside, escaped, last = 0, False, False, -1
    for place, char in enumerate(raw):
        if inside:
            escaped, inside = char == "\\" and not escaped, char != '"' or escaped
        elif char == '"':
            inside = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        elif char == "," and depth == 1:
            last = place
    return raw[:last] + "}" if last >= 0 else "{}"


def _name(call: ToolCall, marks: DistinctArguments) -> str:
    name = call.name or "a call whose name did not arrive"
    if not marks:
        return name
    mark_text = ", ".join(f"{key} {_text(value)[:SHOWN_CHARS]}" for key, value in marks.items())
    return f"{name} ({mark_text})"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
