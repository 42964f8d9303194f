"""Reads scenario files: YAML with line numbers, which pydantic models check.

Every error names file, line and place. The first part has the models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    create_model,
)

from inspector.provider.checks import bracket_path
from inspector.provider.dialects import dialects_named
from inspector.provider.faults import FAULTS, Argument
from inspector.provider.scenarios import FOLDER, DeclaredTool, Intent, Kind, PlacedFault, Story
from inspector.sessions import intake
from loop_core.errors import CallerError
from loop_core.json_parser import JsonPath
from loop_core.values import Tool, ToolCall

# -- The content of a scenario file as pydantic models ---------------------------------------------------------------
# They define only the shape; `schema` publishes it as a JSON schema.

SCHEMA = "loop-inspector/scenario/1"
NAME = r"^[a-z][a-z0-9-]{0,63}$"
_STRICT = ConfigDict(extra="forbid", frozen=True)
Count = Annotated[StrictInt, Field(ge=0, le=1_000_000)]
PositiveCount = Annotated[StrictInt, Field(ge=1, le=1_000_000)]
Seconds = Annotated[StrictFloat | StrictInt, Field(ge=0, le=3600)]
Word = Annotated[StrictStr, Field(min_length=1, max_length=200)]


class Call(BaseModel):
    """A call that the model intends to make."""

    model_config = _STRICT

    name: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    arguments: dict[str, Any] | StrictStr = Field(
        default_factory=dict, description="The arguments as an object, or as the exact text that the model writes.")


class AnswerModel(BaseModel):
    """The model's intended answer: reasoning, then text, then calls."""

    model_config = _STRICT

    reasoning: StrictStr = ""
    text: StrictStr = ""
    calls: tuple[Call, ...] = ()


class ToolModel(BaseModel):
    """A tool that the client should declare."""

    model_config = _STRICT

    name: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    description: StrictStr = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object"}, description="A JSON Schema.")
    result: StrictStr = Field("done", description="What it answers, where a client has nothing better to run.")


class Stall(BaseModel):
    """When a server stops sending, and for how long."""

    model_config = _STRICT

    frame: Count = 0
    seconds: Seconds = 60


class RefusalModel(BaseModel):
    """An HTTP error instead of an answer."""

    model_config = _STRICT

    times: PositiveCount = 1
    retry_after: Seconds | None = None
    # 529: Anthropic's overload
    status: Annotated[StrictInt, Field(json_schema_extra={"enum": [429, 500, 503, 529]})] = 429


ARGUMENT_TYPES: dict[Argument, Any] = {
    Argument.TRUE: StrictBool, Argument.TOKENS: PositiveCount, Argument.CHARACTERS: PositiveCount,
    Argument.FRAME: Count, Argument.BYTES: PositiveCount, Argument.SECONDS: Seconds,
    Argument.WORD: StrictBool | Word, Argument.STALL: Stall, Argument.REFUSAL: RefusalModel,
}
"""Kind of a fault's argument -> the type that checks the argument in a scenario file."""


class _FaultPlace(BaseModel):
    model_config = _STRICT

    answer: Count | None = Field(None, description="The answer that it applies to, counted from 0; else all.")
    segment: Count | None = Field(None, description="Which request for that answer, counted from 0.")
    when: Kind | None = Field(None, description="What the request asks for: an answer, its rest, its calls again.")


_FAULT_FIELDS: dict[str, Any] = {row.name: (ARGUMENT_TYPES[row.argument] | None, Field(None, description=row.does))
                          for row in FAULTS.values()}
FaultModel: Any = create_model("Fault", __base__=_FaultPlace, __doc__="One fault, and the requests that it applies to.",
                               **_FAULT_FIELDS)


class ScenarioModel(BaseModel):
    """A scenario of the scripted provider."""

    model_config = ConfigDict(extra="forbid", frozen=True, title=SCHEMA)

    name: Annotated[StrictStr, Field(pattern=NAME, description="Lower-case letters, digits and hyphens.")]
    story: Annotated[StrictStr, Field(min_length=1, max_length=200, description="What happens, in one line.")]
    prompt: StrictStr = Field("Tell me.", description="What a client may ask, to see it.")
    max_tokens: PositiveCount | None = Field(None, description="The cap of requests that set none.")
    profile: StrictStr | None = Field(None, description="A dialect, as `inspector providers --list` names them.")
    seed: Count = Field(0, description="Chooses ids and the size of pieces.")
    tools: tuple[ToolModel, ...] = ()
    answers: Annotated[tuple[AnswerModel, ...], Field(min_length=1)]
    faults: tuple[FaultModel, ...] = ()
    ends: StrictStr = Field("completed", description="The end state of a turn of inspector's own loop.")
    ends_in: dict[str, StrictStr] = Field(
        default_factory=dict, description="The same where a wire format (`API`, `API stream`, `API whole`) differs.")


def schema() -> str:
    """The JSON schema of a scenario file."""
    model_schema = ScenarioModel.model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **model_schema}, indent=1) + "\n"


def story(model: ScenarioModel) -> Story:
    """The scenario of a validated file."""
    tools = tuple(DeclaredTool(Tool(tool.name, tool.parameters, tool.description), tool.result) for tool in model.tools)
    answers = tuple(Intent(each.reasoning, each.text, tuple(map(_call, each.calls))) for each in model.answers)
    return Story(
        model.name, model.story, answers, tools,
        tuple(_place_fault(fault) for fault in model.faults), model.prompt, model.max_tokens, model.profile, model.seed,
        model.ends, dict(model.ends_in),
    )


def fault_names(fault: Any) -> list[str]:
    """The names of the faults in one entry."""
    return [name for name in FAULTS if getattr(fault, name) is not None]


def _place_fault(fault: Any) -> PlacedFault:
    (name,) = fault_names(fault)
    value = getattr(fault, name)
    return PlacedFault(name, value.model_dump() if isinstance(value, BaseModel) else value, fault.answer, fault.segment,
                       fault.when)


def _call(call: Call) -> ToolCall:
    sent = call.arguments
    return ToolCall(None, call.name, sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False))


DEEPEST = 64
"""The largest number of nested levels. A scenario needs few, and thousands would exhaust the parser's stack."""
MOST_BYTES = 1024 * 1024
ROOT: JsonPath = ()


class _Lines:
    """The lines of all values in the file, by their places in the document."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.of: dict[JsonPath, int] = {}

    def error(self, place: JsonPath, why: str) -> CallerError:
        nearest = place
        while nearest and nearest not in self.of:
            nearest = nearest[:-1]
        line = self.of.get(nearest)
        where = f"{self.name}:{line}" if line is not None else self.name
        return CallerError(f"{where}: {bracket_path(place)}: {why}" if place else f"{where}: {why}")


@cache
def all_stories() -> Mapping[str, Story]:
    """The built-in scenarios, by name."""
    found = [read(path) for path in sorted(FOLDER.glob("*.yaml"))]
    return {each.name: each for each in found}


def story_of(scenarios: Iterable[Any]) -> tuple[Story, ...]:
    """The scenarios for these arguments (scenario objects, names, paths or mappings); without arguments, all built-in
    ones. Raises `CallerError` if one cannot be used, or two have the same name."""
    stories = tuple(_one(each) for each in scenarios) or tuple(all_stories().values())
    names = [each.name for each in stories]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CallerError(f"two scenarios are called {twice}")
    return stories


def _one(value: Any) -> Story:
    if isinstance(value, Story):
        return value
    if isinstance(value, Mapping):
        return check_story(value, _Lines("scenario"))
    name = str(value)
    if name in all_stories():
        return all_stories()[name]
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return read(path)
    raise CallerError(f"no scenario is called {name!r}; expected a file, or one of {', '.join(all_stories())}")


def read(path: Path) -> Story:
    """The scenario in a file.

    Raises:
        CallerError: it cannot be read, or is not a valid scenario; file, line and place are named.
    """
    data = intake.named_file(str(path))
    if len(data) > MOST_BYTES:
        raise CallerError(f"{path}: more than {MOST_BYTES:,} bytes")
    return parse_story(data, str(path))


def parse_story(data: bytes, name: str) -> Story:
    """The scenario in the bytes of a file. Raises `CallerError` if they do not hold a valid scenario."""
    lines = _Lines(name)
    try:
        text = data.decode()
        _refuse_wild(text, name)
        root = yaml.compose(text, yaml.SafeLoader)  # nodes instead of values, because nodes have line numbers
    except UnicodeDecodeError:
        raise CallerError(f"{name}: expected UTF-8") from None
    except yaml.MarkedYAMLError as why:
        mark = why.problem_mark or why.context_mark
        line = mark.line + 1 if mark else 1
        raise CallerError(f"{name}:{line}: not valid YAML: {why.problem or why.context}") from None
    except yaml.YAMLError as why:
        raise CallerError(f"{name}: not valid YAML: {' '.join(str(why).split())}") from None
    if root is None:
        raise CallerError(f"{name}: expected a scenario, but it is empty")
    value = _value(root, ROOT, lines)
    if not isinstance(value, dict):
        raise CallerError(f"{name}:1: expected a mapping with name, story and answers")
    return check_story(value, lines)


def _refuse_wild(text: str, name: str) -> None:
    """Refuses aliases, whose repetition may grow without bound, and nesting that would exhaust the parser's stack."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise CallerError(f"{name}: expected no aliases (*name)")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise CallerError(f"{name}:{line}: expected at most {DEEPEST} levels of nesting")


def _value(node: Any, place: JsonPath, lines: _Lines) -> Any:
    lines.of.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key, inner in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            at = (*place, name)
            lines.of[at] = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise lines.error(at, "expected a name as key")
            if name in mapping:  # YAML forbids it; PyYAML silently keeps the last one
                raise lines.error(at, "expected each name once")
            mapping[name] = _value(inner, at, lines)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(inner, (*place, number), lines) for number, inner in enumerate(node.value)]
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError) as why:
        problem = getattr(why, "problem", None) or str(why).partition("; use sys.")[0]  # advice about Python follows
        raise lines.error(place, f"expected a plain value: {problem}") from None


def check_story(value: Mapping[str, Any], lines: _Lines) -> Story:
    """The scenario in a parsed document. Raises `CallerError` if it does not hold a valid scenario."""
    try:
        model = ScenarioModel.model_validate(value)
    except ValidationError as found:
        raise _first(found, value, lines) from None
    names = {tool.name for tool in model.tools}
    for number, answer in enumerate(model.answers):
        if not (answer.reasoning or answer.text or answer.calls):
            raise lines.error(("answers", number), "expected reasoning, text or calls")
        for at, call in enumerate(answer.calls):
            if call.name not in names:
                name_list = ", ".join(sorted(names)) or "none is declared"
                raise lines.error(("answers", number, "calls", at, "name"),
                                  f"expected the name of one of the tools ({name_list})")
    for number, fault in enumerate(model.faults):
        named = fault_names(fault)
        if len(named) != 1:
            raise lines.error(("faults", number), f"expected one fault, and {' and '.join(named) or 'none'} is given")
        if getattr(fault, named[0]) is False:
            raise lines.error(("faults", number, named[0]), "expected true; a fault that is not wanted is left out")
        if fault.answer is not None and fault.answer >= len(model.answers):
            raise lines.error(("faults", number, "answer"),
                              f"expected one of {len(model.answers)} answers, counted from 0")
    if model.profile is not None:
        try:
            dialects_named((model.profile,))
        except CallerError as why:
            raise lines.error(("profile",), str(why)) from None
    return story(model)


def _first(failure: ValidationError, value: Mapping[str, Any], lines: _Lines) -> CallerError:
    # messages have no links, and no content of the file
    errors = failure.errors(include_url=False, include_input=False)
    # the first one in the file, as an editor shows errors
    error = min(errors, key=lambda each: lines.of.get(_document_place(tuple(each["loc"]), value), 0))
    place = _document_place(tuple(error["loc"]), value)
    if error["type"] == "missing":
        return lines.error((*place, str(error["loc"][-1])), "expected, but missing")
    if error["type"] == "extra_forbidden":
        return lines.error(place, "no field has this name")
    problem = "; ".join(dict.fromkeys(  # a union reports the same value once for each of its types
        each["msg"].replace("Input should be", "expected").replace("String should", "expected to")
        for each in errors if _document_place(tuple(each["loc"]), value) == place))
    return lines.error(place, problem if problem.startswith("expected") else f"not permitted: {problem}")


def _document_place(loc: Sequence[str | int], value: Any) -> JsonPath:
    """The part of a place that is in the document, without the type names that pydantic adds."""
    place: list[str | int] = []
    for key in loc:
        inside = (isinstance(value, Mapping) and key in value) or (
            isinstance(value, Sequence) and not isinstance(value, str) and isinstance(key, int) and key < len(value))
        if not inside:
            break
        place.append(key)
        value = value[key]
    return tuple(place)
