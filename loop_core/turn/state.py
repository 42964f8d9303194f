"""Defines the values of the state machine: its states, its events (input), its effects (output), and the turn.

`machine` makes the transitions; `moves` and `costs` compute what a transition does and costs; drivers and screens read
the values.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from loop_core.judge.classify import Judgement
from loop_core.judge.gate import Verdict
from loop_core.turn.continuation import QUOTE_MARKS, JoinedText, Method, Seam, Segment
from loop_core.turn.history import Ability
from loop_core.turn.limits import Limits, Spend, token_stop
from loop_core.turn.policy import STRICT, Policy, Signal, dispatched_calls
from loop_core.turn.seam import join
from loop_core.values import ChatResponse, Evidence, Message, Request, Stop, StopReason, ToolResultPart


class State(StrEnum):
    """The states of the machine."""

    __hash__ = str.__hash__  # these are keys of hot tables, and Enum's own hash is a Python function

    REQUEST = "Request"
    EVALUATE_STOP = "EvaluateStop"
    EXECUTE_TOOLS = "ExecuteTools"
    CONTINUE_PENDING = "ContinuePending"
    REQUEST_CONTINUATION = "RequestContinuation"
    REPAIR_PENDING = "RepairPending"
    REQUEST_TOOL_REPAIR = "RequestToolRepair"
    RESUME = "Resume"
    NUDGE_PENDING = "NudgePending"
    REQUEST_NUDGE = "RequestNudge"
    ABORT_PARTIAL = "AbortPartial"
    ABORT = "Abort"
    COMPLETE = "Complete"
    UNRECORDED = "Unrecorded"


ENDED = frozenset({State.ABORT, State.COMPLETE, State.UNRECORDED})


class RequestPlace(StrEnum):
    """The place of a request within a turn, by which a recording answers."""

    __hash__ = str.__hash__  # these are keys of hot tables, and Enum's own hash is a Python function

    REQUEST = "request"
    CONTINUATION = "continuation"
    REPAIR = "repair"
    RESUME = "resume"
    NUDGE = "nudge"


class Send(NamedTuple):
    """An effect: send a request to the provider. `new_messages` is what it appends to the history that it sends."""

    place: RequestPlace
    ordinal: int
    """0 for the first request of the turn; each further request is numbered from 1 within its place."""
    method: Method
    """The way in which the answer, or the rest of it, is requested."""
    new_messages: tuple[Message, ...] = ()
    max_tokens: int | None = None
    """The output cap of this request in tokens; None for the server's own."""
    tool_choice: str | None = None
    """The tool choice of this request, as `Request.tool_choice`."""
    anchor: str = ""
    """The words that the model is asked to quote first; empty if none."""
    stripped: str = ""
    """The white space at the end of a prefill that is not sent, because providers refuse it."""
    mark: str = QUOTE_MARKS[0]
    """The name of the tags around the anchor."""
    lower_cap: int | None = None
    """The cap to use again if the server refuses this raised one; None if the cap was not raised."""


class CallAnswer(NamedTuple):
    """The answer to a call that may not run; `result` says why."""

    verdict: Verdict
    result: ToolResultPart
    place: int
    """The index of the call in the whole batch, released calls included."""


class RunTools(NamedTuple):
    """An effect: run the released calls, in order, and no others.

    Further calls that the policy would have run are in `Turn.would_run`; they are shown and never run.
    """

    released: tuple[Verdict, ...]
    """The calls that the gate released. No other call may be run."""
    answers: tuple[CallAnswer, ...] = ()
    """The answers to the other calls of the batch, which the machine adds to the results of the released calls."""

    @property
    def batch(self) -> tuple[Verdict, ...]:
        """Every call of the batch in order, for display. The calls in `answers` must not run."""
        verdicts = list(self.released)
        for answer in self.answers:
            # Answers are in ascending order of place, so each insertion position is final.
            verdicts.insert(answer.place, answer.verdict)
        return tuple(verdicts)

    def chars_before(self, spend: Spend) -> int:
        """The characters of all results of the turn before the first call of the batch runs, including the ready-made
        answers, which are sent like other results."""
        return spend.result_chars + sum(answer.result.size for answer in self.answers)

    def all_results(self, results: Sequence[ToolResultPart]) -> tuple[ToolResultPart, ...]:
        """The results of the whole batch: the results of the released calls, with the ready-made answers to the others
        between them. If `results` has one for every call, as a recording does, it is returned unchanged."""
        # A recorded agent answered every call, including those that this policy would not run.
        if len(results) > len(self.released):
            return tuple(results)
        merged = list(results)
        for answer in self.answers:
            merged.insert(answer.place, answer.result)
        return tuple(merged)


class Finish(NamedTuple):
    """An effect: the turn has ended. `notice` is for the operator and never assistant text."""

    terminal: str
    """How the turn ended, as `Turn.terminal`."""
    notice: str | None = None
    silent: str | None = None
    """The word by which the model asked to show nothing (pi's agent loop: `__SILENT__`, `HEARTBEAT_OK`); None if it did
    not."""


Effect = Send | RunTools | Finish


class Recut(NamedTuple):
    """How a simulated answer was made: recorded output that was cut again at another budget."""

    basis: str
    """The source of the token boundaries, as the simulation names it."""
    note: str
    """The source of the token boundaries in words for people, with the figures."""
    budget: int | None
    """The output cap that was sent; None if there was none."""
    tokens: int
    """The number of output tokens of this answer, counted by `basis`."""
    body: bytes
    """The bytes that the provider would have sent, from which the answer was decoded."""
    lost: str = ""
    """What the wire format could not carry and was left out; empty if it carried all."""
    apart: tuple[int, int] | None = None
    """The least and the largest number of characters that the budget may leave (an ESTIMATED cut); None if the cut is
    exact."""
    cut: bool = False
    """Whether the budget cut the answer, whatever its stop word is."""

    @property
    def between(self) -> str:
        """The range of an inexact cut, in words; empty if the cut is exact."""
        return "" if self.apart is None else f"cut after {self.apart[0]:,} to {self.apart[1]:,} characters"


def cancelled_answer(judgement: Judgement) -> Judgement:
    """The judgement of an answer that the operator cancelled: CANCELLED, so no call runs and the turn ends."""
    evidence = (*judgement.stop.evidence, Evidence("operator.cancel", None, "the operator cancelled the turn"))
    return judgement._replace(stop=StopReason(Stop.CANCELLED, judgement.stop.raw, None, evidence), promoted=False)


class ProviderResponse(NamedTuple):
    """An event: the provider answered. `method`, `stripped` and `echoes` say how the answer was really requested."""

    response: ChatResponse
    judgement: Judgement
    number: int | None = None
    """The number of the response in the recording or run, from 0; None if it has none."""
    method: Method | None = None
    stripped: str = ""
    echoes: bool | None = None
    verdicts: tuple[Verdict, ...] | None = None
    """The gate's verdicts on the response's calls, if they were computed before (a replay does so once); None if the
    machine is to compute them."""
    recut: Recut | None = None
    """How the answer was made; None if it is not simulated."""
    anchor: str = ""
    """The words that a recorded request asked the model to quote first."""
    live: bool = False
    """Whether a server answered a request of the engine, in this or an earlier run. False for another agent's
    recording."""
    synthetic: bool = False
    """Whether the answer was made from a table for demonstration, without a provider."""
    mark: str = QUOTE_MARKS[0]
    """The name of the tags around the words to quote."""

    @property
    def cut_unseen(self) -> bool:
        """Whether a simulated budget cut the answer without a sign in it, because its server reports cut answers as
        finished."""
        cut = self.recut is not None and self.recut.cut
        return cut and self.judgement.stop.normalized is not Stop.MAX_TOKENS and not self.judgement.cap_reached


class ToolResults(NamedTuple):
    """An event: the tools ran. It also holds what the user wrote meanwhile (steering)."""

    results: tuple[ToolResultPart, ...]
    """One result for every released call, in order; or one for every call of the batch, as a recording holds them."""
    steering: tuple[Message, ...] = ()


class Tick(NamedTuple):
    """An event: make the next transition. It is for states that wait for nothing."""


class Cancel(NamedTuple):
    """An event: the operator or the client ended the turn."""

    live: bool = False
    """Whether a live request was cancelled in a run that began as a recording."""


class NotRecorded(NamedTuple):
    """An event: the recording has no answer for this place."""

    why: str = ""
    """A description of the missing answer for the operator; empty if the recording ends."""


Event = ProviderResponse | ToolResults | Tick | Cancel | NotRecorded


class Evaluation(NamedTuple):
    """The latest response of a turn, with its judgement, its verdicts and the word that the policy follows."""

    response: ChatResponse
    judgement: Judgement
    verdicts: tuple[Verdict, ...]
    number: int | None
    """As `ProviderResponse.number`."""
    word: Stop
    """The stop reason that the policy follows."""


GOES_ON = frozenset({Method.PREFILL, Method.TOKEN, Method.POLL})
"""The methods whose requests do not append the text so far to the history."""


class Turn(NamedTuple):
    """One turn as a value: state, request, history, spend, answers."""

    id: str
    request: Request
    provider: str = ""
    """The name of the server for events and metrics: a profile's name or a host."""
    state: State = State.REQUEST
    limits: Limits = Limits()
    policy: Policy = STRICT
    ability: Ability = Ability()
    history: tuple[Message, ...] = ()
    """The messages that the next request sends before `Send.new_messages`."""
    answers: tuple[tuple[Segment, ...], ...] = ((),)
    """The segments of every answer of the turn: one answer before each run of tools, and the last one."""
    spend: Spend = Spend()
    evaluation: Evaluation | None = None
    last_send: Send | None = None
    """The pending request, or else the last one; None if a limit stopped a resumption."""
    repairing: bool = False
    """Whether a held call was requested again and has not arrived yet."""
    unrepaired: tuple[Verdict, ...] = ()
    """The held calls that have not been received again yet."""
    repaired_siblings: tuple[Verdict, ...] = ()
    """The calls of the same batch that were received again. They help to name those that were not."""
    refusals: frozenset[str] = frozenset()
    """The names of added fields that the server refused (`costs.REFUSALS`). They are not tried again."""
    last_calls: tuple[tuple[str, str | None], ...] = ()
    signal: Signal | None = None
    """The signal that led into `state`; None at the beginning."""
    outcome: State | None = None
    """The state in which the turn was decided: Complete, Abort, AbortPartial or Unrecorded; None while it goes on."""
    terminal: str | None = None
    """How the turn ended: `completed`, or why it is not complete; None while it goes on."""
    notice: str | None = None
    """A sentence for the user about how the turn ended; None if all is well, or while it goes on."""
    bound_by: int | None = None
    """The max_tokens from which the token bound is derived: None for the request's own; 0 if there is no bound. A
    what-if that changes only max_tokens sets it to keep the bound."""

    @property
    def ended(self) -> bool:
        """Whether the turn is in a terminal state."""
        return self.state in ENDED

    @property
    def token_cap(self) -> int | None:
        """The bound on output tokens in force; None if there is none."""
        return self.cap_under(self.limits, self.policy)

    def cap_under(self, limits: Limits, policy: Policy) -> int | None:
        """The bound on output tokens under other limits and another policy."""
        # 0 stands for "no bound", because None already means "as the request".
        initial = self.request.max_tokens if self.bound_by is None else self.bound_by or None
        return None if "tokens" in policy.lacks else limits.token_cap(initial)

    @property
    def would_run(self) -> tuple[Verdict, ...]:
        """The calls of the response that the policy would run, held ones included: for display, never to be run."""
        return dispatched_calls(self.policy, self.evaluation.verdicts) if self.evaluation is not None else ()

    @property
    def token_stop(self) -> int | None:
        """The spent tokens at which no further request fits under the token bound; None if there is no bound."""
        return token_stop(self.token_cap, self.request, self.policy.lacks)

    @property
    def room(self) -> int | None:
        """The largest output cap of the next request in tokens; None if there is no bound."""
        cap = None if "room" in self.policy.lacks else self.token_cap
        return None if cap is None else max(0, cap - self.spend.continuation_tokens)

    def joined_answer(self, answer: int = -1) -> JoinedText:
        """The merged text of one answer, the last by default, with its seams."""
        return join(self.answers[answer], self.policy.seam)

    @property
    def doubtful_seams(self) -> tuple[Seam, ...]:
        """The seams of all answers where nothing shows that the two sides fit."""
        several = (answer for answer in self.answers if len(answer) > 1)
        return tuple(seam for answer in several for seam in join(answer, self.policy.seam).doubtful_seams)

    @property
    def tail(self) -> str:
        """The text that the history does not hold yet: the last segment and the earlier ones that it continues."""
        segments = self.answers[-1]
        # A hint appends the text before it to the history; a prefill, a token and a poll do not: their texts add up.
        if not segments or segments[-1].method not in GOES_ON:
            return segments[-1].text if segments else ""
        first = len(segments) - 1
        while first > 0 and segments[first].method in GOES_ON:
            first -= 1
        return join(segments[first:], self.policy.seam).text

