"""The JSON Schema of `explain --json`. `explain_document` makes the document; tests validate it against the schema."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from inspector.report.explain_document import SCHEMA


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Place(_Model):
    """A place in an exchange."""

    part: Literal["request", "headers", "body"]
    start: int | None = Field(
        description="Offset in the decoded body of the first byte that the rule read; null if no bytes are known.")
    end: int | None = Field(description="Offset of the byte after the last one.")
    pointer: str | None = Field(
        description="A JSON pointer into the event or body that holds them, or a word such as `url`; null if none.")


class EvidenceModel(_Model):
    """One rule that led to the effective stop reason."""

    rule: str
    at: Place | None


class AdviceModel(_Model):
    """What to change about a turn."""

    text: str
    basis: Literal["recorded", "simulated", "estimated"] = Field(
        description="What shows that the advice helps: a replay of the recording, a simulation, or nothing (a guess).")
    set: dict[str, str] | None = Field(
        description="The settings of the run that was tried, as `replay --set` takes them; null for a guess.")


class VerdictModel(_Model):
    """The verdict on a turn."""

    id: str = Field(description="The verdict's word in snake case: complete, cut_call_run, truncated, …",
                    pattern="^[a-z0-9]+(_[a-z0-9]+)*$")
    text: str
    severity: Literal["error", "warning", "info"]
    sure: bool = Field(description="False if the end of the turn is inferred, or if the run did not reach the end.")
    advice: AdviceModel | None


class SkippedModel(_Model):
    """An entry of an input that was not read."""

    entry: int
    why: str


class NoticeCountModel(_Model):
    """What a notice counts."""

    words: str
    counts: dict[str, int] = Field(description="The number of each kind; the kind is empty if they are of no kinds.")
    of: int | None = Field(None, description="The number of all things, if the notice is about some of them.")


class InputModel(_Model):
    """A file that was read, or could not be."""

    path: str
    format: str | None
    responses: int
    skipped: list[SkippedModel]
    notices: list[str] = []
    notice_counts: list[NoticeCountModel] = Field([], description=(
        "The counts of those notices that have one. Equal `words` of several files can be added up."))
    masked: dict[str, int] = Field({}, description="How many credentials were masked, by kind.")
    error: str = ""


class CallModel(_Model):
    """A tool call and the gate's verdict."""

    id: str | None
    name: str
    arguments_raw: str | None = Field(description="The arguments as received; null if there are none.")
    verdict: Literal["ready", "held", "rejected"]
    why: str


class UsageModel(_Model):
    """Token counts as the provider reported them; a count that it did not report is null."""

    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cached_tokens: int | None = Field(description="Input tokens that were read from the provider's cache.")
    cache_write_tokens: int | None = Field(description="Input tokens that were written to the provider's cache.")
    uncached_tokens: int | None = Field(
        description="The other input tokens. Some formats count cached tokens in `input_tokens`, others beside it; a "
        "cost is computed from these three counts and the output. Null if unknown or contradictory.")


_CLOCK = ("The clock of the times: `wire`, that of the client which recorded the bytes; `recorder`, that of the agent "
          "which wrote the rows of a transcript.")


class GapModel(_Model):
    """The longest time in which no byte of an answer arrived."""

    ms: float
    at: int = Field(description="The offset of the byte that came after this time; the size of the body if none came.")


class TimesModel(_Model):
    """The times of a response; a time that was not recorded is absent."""

    clock: Literal["wire", "recorder"] = Field(description=_CLOCK)
    started: str | None = Field(None, description="When the request was sent, or the first row was written.")
    duration_ms: float | None = Field(None, description="Milliseconds from the request to the end of the answer.")
    first_byte_ms: float | None = Field(None, description="Milliseconds from the request to the first body byte.")
    largest_gap: GapModel | None = None
    chunks: int | None = Field(None, description="The number of pieces of the body, if the time of each is known.")


class TurnTimesModel(_Model):
    """When a turn began and how long it took."""

    clock: Literal["wire", "recorder"] = Field(description=_CLOCK)
    started: str | None = None
    duration_ms: float | None = Field(
        None, description="Milliseconds from the first request to the end of the last answer; with clock `recorder`, "
                          "from the first to the last row of the turn's answers. Absent if not recorded.")
    answers_ms: float | None = Field(
        None, description="The milliseconds of all answers of the turn, without the time between them.")


class CostModel(_Model):
    """The cost of a response by the configured prices; absent if a price or the usage is not known."""

    amount: float
    currency: str | None = Field(None, description="The configured currency; absent if none is configured.")


class CostSumModel(CostModel):
    """The cost of several responses together."""

    priced: int = Field(description="The number of responses whose cost is known and contained in the amount.")
    responses: int


class ResponseModel(_Model):
    """One provider response."""

    path: str
    entry: int | None = Field(description="The index of the response in the file, from 0.")
    api: str
    provider: str | None = Field(description="The host of the request; null if no address was recorded.")
    profile: str
    model: str | None
    streaming: bool
    http_status: int | None
    raw_stop_reason: str | None = Field(description="The provider's own word, unchanged; null if it sent none.")
    mapped_stop_reason: str = Field(description="The normalized word that the format's table gives.")
    stop_reason: str = Field(description="The effective reason, after the judge's corrections.")
    stop_detail: str | None
    evidence: list[EvidenceModel]
    text: str | None
    reasoning: str | None
    tool_calls: list[CallModel]
    usage: UsageModel
    turn: str
    segment: int = Field(description="The number of the response among the segments of its answer, from 1.")
    state: str | None = Field(description="The machine's state after the response; null if it was not reached.")
    fidelity: Literal["LIVE", "SIMULATED"] | None = Field(None, description="Absent if the response was recorded.")
    times: TimesModel | None = Field(None, description="Absent if the recording holds no time.")
    cost: CostModel | None = None


class SimulationModel(_Model):
    """How a simulated response was made: the known output, cut again at a budget."""

    basis: str = Field(description="How the token boundaries were found.")
    note: str = Field(description="The basis in words, with the figures.")
    budget: int | None = Field(description="The output cap that was sent; null if there was none.")
    tokens: int = Field(description="The output tokens of the answer, counted by the basis.")
    lost: str = Field(description="What was left out because the format cannot carry it; empty if nothing was.")
    estimated: list[int] | None = Field(
        description="The least and the most characters that the budget may leave; null if the cut is exact.")


class SimulatedModel(ResponseModel):
    """One response that is in no recording."""

    step: int = Field(description="The number of the step that received the response, from 1.")
    simulation: SimulationModel


class TurnModel(_Model):
    """One turn under the machine."""

    id: str
    conversation: str
    responses: list[int] = Field(description="Indices into `responses`.")
    final_state: str
    terminal_reason: str
    merged_text: str
    continuations: int
    requests: int
    output_tokens: int = Field(description="The output tokens of all responses, as far as they were counted.")
    continuation_tokens: int = Field(description="Tokens of cut responses and their continuations, bounded by limits.")
    notice: str | None
    verdict: VerdictModel
    times: TurnTimesModel | None = Field(None, description="Absent if the recording holds no time.")
    cost: CostSumModel | None = None


class FindingModel(_Model):
    """Something that deserves attention, with its place."""

    rule: str
    severity: Literal["error", "warning", "info"]
    response: int | None
    turn: str | None
    message: str
    at: Place | None


class FilterModel(_Model):
    """The filter that was given, and the responses that it finds."""

    text: str
    responses: list[int]


class ExplainDocument(_Model):
    """The document that `inspector explain --json` prints."""

    document_schema: Literal["loop-inspector/explain/2"] = Field(alias="schema")
    inputs: list[InputModel]
    settings: str = Field("", description="In an export, the settings of the run in words; absent for the defaults.")
    responses: list[ResponseModel]
    simulated: list[SimulatedModel] = Field(
        [], description="The answers of a simulated run, in the order of its steps; absent if nothing was simulated.")
    turns: list[TurnModel]
    verdict: VerdictModel | None = Field(description="The verdict on the worst turn; null if no turn was read.")
    findings: list[FindingModel]
    cost: CostSumModel | None = Field(None, description="The cost of all recorded responses.")
    filter: FilterModel | None = None


def explain_schema() -> dict[str, Any]:
    """The JSON Schema of the document."""
    document_schema = ExplainDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document_schema, "title": SCHEMA}
