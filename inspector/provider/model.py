"""What a scenario file may hold, as pydantic models; its JSON schema is published beside them.

Only the shape is here. Files and their lines are in `reading`, what a scenario means is in `story` and `faults`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, create_model

from inspector.provider.faults import FAULTS, Takes
from inspector.provider.story import Answer, Declared, Kind, Placed, Story
from loop_core.frozen import replace
from loop_core.values import Tool, ToolCall

SCHEMA = "loop-inspector/scenario/1"
NAME = r"^[a-z][a-z0-9-]{0,63}$"
_CLOSED = ConfigDict(extra="forbid", frozen=True)
Count = Annotated[StrictInt, Field(ge=0, le=1_000_000)]
Some = Annotated[StrictInt, Field(ge=1, le=1_000_000)]
Seconds = Annotated[StrictFloat | StrictInt, Field(ge=0, le=3600)]
Word = Annotated[StrictStr, Field(min_length=1, max_length=200)]


class Call(BaseModel):
    """A call that the model means to make."""

    model_config = _CLOSED

    name: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    arguments: dict[str, Any] | StrictStr = Field(
        default_factory=dict, description="The arguments as an object, or as the exact text that the model writes.")


class AnswerModel(BaseModel):
    """What the model means to say: thinking, then text, then calls."""

    model_config = _CLOSED

    reasoning: StrictStr = ""
    text: StrictStr = ""
    calls: tuple[Call, ...] = ()


class ToolModel(BaseModel):
    """A tool that the client is expected to declare."""

    model_config = _CLOSED

    name: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    description: StrictStr = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object"}, description="A JSON Schema.")
    result: StrictStr = Field("done", description="What it answers, where a client has nothing better to run.")


class Stall(BaseModel):
    """When a server falls silent, and for how long."""

    model_config = _CLOSED

    frame: Count = 0
    seconds: Seconds = 60


class RefusalModel(BaseModel):
    """An HTTP error in place of an answer."""

    model_config = _CLOSED

    times: Some = 1
    retry_after: Seconds | None = None
    status: Annotated[StrictInt, Field(json_schema_extra={"enum": [429, 500, 503, 529]})] = 429


TAKES: dict[Takes, Any] = {
    Takes.TRUE: StrictBool, Takes.TOKENS: Some, Takes.CHARACTERS: Some, Takes.FRAME: Count, Takes.BYTES: Some,
    Takes.SECONDS: Seconds, Takes.WORD: StrictBool | Word, Takes.STALL: Stall, Takes.REFUSAL: RefusalModel,
}
"""What is written behind a fault's name -> its type."""


class _At(BaseModel):
    model_config = _CLOSED

    answer: Count | None = Field(None, description="The answer that it befalls, counted from 0; else all.")
    segment: Count | None = Field(None, description="Which request for that answer, counted from 0.")
    when: Kind | None = Field(None, description="What the request asks for: an answer, its rest, its calls again.")


_NAMED: dict[str, Any] = {row.name: (TAKES[row.takes] | None, Field(None, description=row.does))
                          for row in FAULTS.values()}
FaultModel: Any = create_model("Fault", __base__=_At, __doc__="One fault, and the requests that it befalls.", **_NAMED)


class ScenarioModel(BaseModel):
    """A scenario of the scripted provider."""

    model_config = ConfigDict(extra="forbid", frozen=True, title=SCHEMA)

    name: Annotated[StrictStr, Field(pattern=NAME, description="Lower-case letters, digits and hyphens.")]
    story: Annotated[StrictStr, Field(min_length=1, max_length=200, description="What happens, in one line.")]
    prompt: StrictStr = Field("Tell me.", description="What a client may ask, to see it.")
    max_tokens: Some | None = Field(None, description="The cap of requests that set none.")
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
    made = ScenarioModel.model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **made}, indent=1) + "\n"


def story(model: ScenarioModel) -> Story:
    """The scenario that a checked file holds."""
    tools = tuple(Declared(Tool(tool.name, tool.parameters, tool.description), tool.result) for tool in model.tools)
    made = Story(
        model.name, model.story, tuple(_answer(answer) for answer in model.answers), tools, (), model.prompt,
        model.max_tokens, model.profile, model.seed, model.ends, dict(model.ends_in),
    )
    return replace(made, faults=tuple(_placed(fault) for fault in model.faults))


def given(fault: Any) -> list[str]:
    """The names of the faults that one entry holds."""
    return [name for name in FAULTS if getattr(fault, name) is not None]


def _placed(fault: Any) -> Placed:
    (name,) = given(fault)
    value = getattr(fault, name)
    return Placed(name, value.model_dump() if isinstance(value, BaseModel) else value, fault.answer, fault.segment,
                  fault.when)


def _answer(answer: AnswerModel) -> Answer:
    return Answer(answer.reasoning, answer.text, tuple(_call(call) for call in answer.calls))


def _call(call: Call) -> ToolCall:
    given = call.arguments
    return ToolCall(None, call.name, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))
