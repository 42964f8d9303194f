"""The records of a session file as pydantic models: what may be written, and the schema that others rely on.

Imported only when a session is written, its schema is exported or a bad record is explained; reading does without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from inspector.sessions import redact
from inspector.sessions.native_fields import base64_of, bytes_of, written_id
from loop_core.formats import FORMATS
from loop_core.turn.state import RequestPlace

Headers = list[tuple[str, str]]


if TYPE_CHECKING:
    Api = str
else:
    Api = Literal[tuple(FORMATS)]  # for pydantic; type checkers cannot evaluate such a Literal


class Record(BaseModel):
    """One line of a session file. Readers ignore fields that they do not know; writers may write only these."""

    model_config = ConfigDict(extra="forbid")


class Texts(Record):
    """The description of a session: title, story, provenance, end state."""

    title: str = Field("", description="One line.")
    story: str = Field("", description="What happens, for people.")
    provenance: str = Field(
        "", description="Where the bytes come from: recorded from what, or written by hand after what."
    )
    end_state: str = Field("", description="How it ends, in the words of the state machine.")


class HeaderRecord(Texts):
    """The first line of every session file."""

    loop_inspector_session: Literal[1] = Field(description="The version of the format.")
    producer: str = Field("", description="The program that wrote the file.")


class AboutRecord(Texts):
    """The header's texts if they become known only later; the last record counts."""

    type: Literal["about"]


class Payload(Record):
    """Bytes: as text if they are valid UTF-8, else as base64."""

    text: str | None = None
    base64: str | None = None


class RequestRecord(Payload):
    """A request as it was sent; its body is `body`, or `text` or `base64` where it is not JSON."""

    type: Literal["request"]
    id: str = Field(description="Names the exchange in the records that follow.")
    api: Api | None = Field(None, description="The API; found from URL and content where absent.")
    profile: str | None = Field(
        None, description="Which server speaks the format; found from URL, headers and content where absent."
    )
    url: str = ""
    method: str = "POST"
    headers: Headers = Field(default_factory=list)
    body: Any = None
    place: str | None = Field(
        None, description=f"Why this program sent it: {', '.join(RequestPlace)}; absent where another did."
    )
    ordinal: int | None = Field(
        None, description="Its number among the requests of that place in the turn, from 1; 0 for the first request."
    )
    retries: str | None = Field(None, description="The request that this one repeats, since it got no answer.")
    at: str | None = Field(None, description="When it was sent (ISO 8601).")

    @model_validator(mode="after")
    def _one_body(self) -> RequestRecord:
        if sum(value is not None for value in (self.body, self.text, self.base64)) > 1:
            raise ValueError("expected one of body, text and base64")
        return self


class ResponseRecord(Record):
    """Status and headers of a response, as they arrived."""

    type: Literal["response"]
    request: str = Field(description="The id of the request that it answers.")
    status: int | None = Field(None, ge=100, lt=1000)
    headers: Headers = Field(default_factory=list)
    simulated: bool | None = Field(None, description="true where nobody was asked: the answer was made from a table.")
    at: str | None = None


class BytesRecord(Payload):
    """A piece of the response body, in the order of arrival."""

    type: Literal["bytes"]
    request: str
    ms: float | None = Field(None, ge=0, description="Milliseconds since the request was sent.")

    @model_validator(mode="after")
    def _some_bytes(self) -> BytesRecord:
        if (self.text is None) == (self.base64 is None):
            raise ValueError("expected either text or base64")
        return self


class EndRecord(Record):
    """The end of the response's bytes. If this record is missing, the recording stopped while they arrived."""

    type: Literal["end"]
    request: str
    end: Literal["eof", "reset", "timeout", "aborted", "damaged", "cut", "not_recorded"]
    ms: float | None = Field(None, ge=0, description="Milliseconds since the request was sent.")
    problem: str = Field("", description="What went wrong on the way, in words.")


class ToolResultRecord(Record):
    """A tool's result."""

    type: Literal["tool_result"]
    request: str | None = Field(None, description="The id of the request whose response held the call.")
    call_id: str | None = None
    name: str | None = None
    text: str
    is_error: bool = False
    at: str | None = None


class LimitsRecord(Record):
    """Limits that the operator set, by their names in the configuration."""

    type: Literal["limits"]
    values: dict[str, Any]
    request: str | None = None
    at: str | None = None


class PolicyRecord(Record):
    """The policy that the operator chose."""

    type: Literal["policy"]
    name: str
    allow_silence: bool | None = Field(
        None, description="Whether an answer with nothing visible was asked for; null: as the policy says.")
    request: str | None = None
    at: str | None = None


class NoteRecord(Record):
    """A note of the operator."""

    type: Literal["note"]
    text: str
    request: str | None = None
    at: str | None = None


class CancelRecord(Record):
    """The operator ended the turn: while this request was under way, or after the machine had received its answer."""

    type: Literal["cancel"]
    request: str = Field(description="The id of the last request that was sent.")
    answered: bool = Field(False, description="Whether its answer had been taken in; then nothing was asked after it.")
    at: str | None = None


Typed = Annotated[
    AboutRecord | RequestRecord | ResponseRecord | BytesRecord | EndRecord | ToolResultRecord | LimitsRecord
    | PolicyRecord | NoteRecord | CancelRecord,
    Field(discriminator="type"),
]
_TYPED: TypeAdapter[Any] = TypeAdapter(Typed)
_LINE: TypeAdapter[Any] = TypeAdapter(HeaderRecord | Typed)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of one line."""
    whole = _LINE.json_schema()
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"  # the version of JSON Schema that pydantic writes
    whole["title"] = "A line of a Loop Inspector session"
    return whole


def clean(record: BaseModel | Mapping[str, Any]) -> str:
    """The line that is written for a record: checked, without credentials, absent fields left out. Raises `ValueError`
    if it is not a record of the format; the text says which field and what was expected."""
    fields = record.model_dump() if isinstance(record, BaseModel) else dict(record)
    try:
        header = "loop_inspector_session" in fields
        model = HeaderRecord.model_validate(fields) if header else _TYPED.validate_python(fields)
    except ValidationError as why:
        raise ValueError(_first(why)) from None
    written = model.model_dump(mode="json", exclude_defaults=True) | _marks(model)
    masked = redact.texts(written)
    # These members have masks of their own, which look like a part of an id, a header, an address, a request or a body.
    masked |= {name: written_id(written[name]) for name in ("id", "request", "retries") if written.get(name)}
    if "headers" in written:
        masked["headers"] = redact.headers([(name, value) for name, value in written["headers"]])
    if "url" in written:
        masked["url"] = redact.url(written["url"])
    if written.get("body") is not None:
        masked["body"] = redact.request(masked["body"], json.dumps(masked["body"]))
    if written.get("base64") is not None:
        masked["base64"] = base64_of(bytes_of(written))
    first = ("loop_inspector_session", "type", "id", "request")
    ordered = {name: masked[name] for name in first if name in masked} | masked
    # UTF-8 cannot represent a lone surrogate
    return json.dumps(ordered, ensure_ascii=False).encode("utf-8", "replace").decode()


def _marks(model: BaseModel) -> dict[str, Any]:
    names = ("loop_inspector_session", "type", "end", "values")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def explain(record: Mapping[str, Any]) -> str:
    """The error of a record that the reader refused, in one line."""
    try:
        _TYPED.validate_python(dict(record))
    except ValidationError as why:
        return _first(why)
    return f"a {record.get('type')} record that cannot be used"


def _first(why: ValidationError) -> str:
    errors = why.errors(include_url=False, include_input=False)
    # a wrong value explains more than an unknown field
    error = next((each for each in errors if each["type"] != "extra_forbidden"), errors[0])
    place = ".".join(str(key) for key in error["loc"]) or "record"
    return f"{place}: {error['msg']}"
