"""The table of the rules of `inspector check`, from which `inspector rule` and `docs/check.md` are generated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from inspector.check import finders
from inspector.check.finders import Finder, RuleHit, from_findings, from_verdict
from inspector.config.settings import suggestion
from inspector.report.facts import TurnFacts, View
from loop_core.errors import CallerError
from loop_core.values import Severity


class CheckRule(NamedTuple):
    """One rule."""

    id: str
    severity: Severity
    title: str
    about: str
    example: str
    """One sentence about a session that breaks the rule."""
    fix: str
    find: Finder


def first_of(*finders: Finder) -> Finder:
    """A finder that returns the result of the first finder with a match."""

    def find(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
        yield from next((hits for finder in finders if (hits := list(finder(view, turn)))), [])

    return find


def unless(other: Finder, finder: Finder) -> Finder:
    """A finder whose matches count only in turns without a match of another finder."""

    def find(view: View, turn: TurnFacts) -> Iterator[RuleHit]:
        if next(other(view, turn), None) is None:
            yield from finder(view, turn)

    return find


ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

_BAD_ARGUMENTS = ("judge.invalid_arguments", "judge.empty_arguments")
_EVERY: tuple[CheckRule, ...] = (
    CheckRule(
        "cut-call-executed", ERROR, "A cut tool call was run",
        "The agent ran a tool call whose arguments were cut: by the output cap, by a full context, or by a stream "
        "that broke. A file is then written in half, or a command run with half of its text. The next request, or a "
        "row of the transcript, holds the result of the call, so it did run. It is a warning if the arguments are "
        "complete and the only sign of a cut is that the budget was used up.",
        'The arguments end with `{"path": "a.md", "content": "The rep`, and the next request holds `wrote 7 bytes`.',
        "Run a call only if the stop reason asks for tools; ask for a cut call again, with a budget of its own.",
        from_findings("agent.ran_held_call")),
    CheckRule(
        "unproven-call-executed", WARNING, "An unverified call was run",
        "The agent ran a call that is not known to be complete: for example, no stop reason asks for tools, or the "
        "arguments are missing or invalid. Nothing shows a cut either.",
        "The stream ended without a stop reason, and its call was run.",
        "Run a call only under a stop reason that asks for tools.",
        from_findings("agent.ran_unsure_call")),
    CheckRule(
        "cut-answer-taken", ERROR, "A cut answer was treated as complete",
        "The answer was cut, and the conversation went on without the rest: the agent treated the part as the answer.",
        "An answer ends with `max_tokens` in the middle of a sentence; the next user message follows it.",
        "Continue a cut answer, or tell the user that it is incomplete.",
        from_findings("agent.took_cut_answer")),
    CheckRule(
        "answer-cut", ERROR, "The turn ended with a cut answer",
        "The last answer of the turn was cut by the output cap, and no recorded request asked for the rest. It is a "
        "warning if the only sign of a cut is that the budget was used up.",
        '`finish_reason` is `length`, and no request follows.',
        "Raise max_tokens, or let the loop continue cut answers.",
        finders.cut_answer),
    CheckRule(
        "call-cut", ERROR, "The turn ended with an incomplete call",
        "A tool call was cut or came without its arguments, nobody ran it, and it was not asked for again or never "
        "arrived complete. It is a warning if it came without arguments and its tool is not known to require any, or "
        "if the only sign of a cut is that the budget was used up.",
        "The arguments of `write_file` end in the middle of their JSON, and the session ends there.",
        "Ask for the call again; if the budget cut it, with a larger max_tokens.",
        finders.cut_call),
    CheckRule(
        "repeated-cut-call", WARNING, "The same call was cut again and again",
        "A call was cut, asked for again, and cut again at the same beginning. Each attempt costs the same tokens and "
        "cannot succeed under the same cap.",
        "Three answers of 4,096 tokens each, all ending in the content of the same file.",
        "Raise max_tokens for the repair, or have the model write the file in parts.",
        finders.repeated_cut_call),
    CheckRule(
        "continuation-damage", ERROR, "A continued answer lost, repeated or restarted its text",
        "A cut answer was continued, but the continuation started the answer again, or the agent's history lacks a "
        "segment or repeats the overlap of two segments.",
        "The second segment begins with the first words of the first one.",
        "Join segments at their overlap, and keep every segment in the history.",
        finders.continuation_damage),
    CheckRule(
        "seam-unverified", INFO, "A continuation could not be verified",
        "A cut answer was continued, and no overlap shows that the two texts belong together.",
        "The first segment ends with `the queue `, the second begins with `A deploy`.",
        "Read the text around the seam; a prefill or an anchor makes a continuation verifiable.",
        from_verdict("SEAM UNVERIFIED")),
    CheckRule(
        "looks-finished", ERROR, "An answer only looks finished",
        "The stop reason says that the answer is complete, but there is none: it is empty, holds only reasoning, "
        "announces a call that never came, or contains the call as text.",
        '`finish_reason` is `stop`, and the message has no content and no call.',
        "Send the request again with a short message that asks for an answer; if the text contains a call, start the "
        "server with the tool parser of its model.",
        from_verdict("CALL LEAKED", "NO CALL", "COMMENTARY ONLY", "REASONING ONLY", "EMPTY ANSWER")),
    CheckRule(
        "reason-contradicts-bytes", ERROR, "The stop reason contradicts the bytes",
        "A router or server reports an answer as finished, but its bytes show a cut: the provider's own word beside "
        "it says so, arguments end in the middle of their JSON, or a block was never closed.",
        '`finish_reason` is `tool_calls`, `native_finish_reason` is `max_tokens`.',
        "Decide by the effective reason, and report both words to the maintainers of the router.",
        from_findings("judge.", but=_BAD_ARGUMENTS)),
    CheckRule(
        "unreadable-arguments", ERROR, "A call with arguments that no tool can read",
        "The stop reason asks for tools, but the arguments of a call are not a JSON object. Empty or absent "
        "arguments are a warning: the tool may need none, though the request does not say so.",
        "`arguments` is absent, and the tool has parameters.",
        "Run nothing; ask for the call again. Declare a tool that needs no arguments with empty `properties`.",
        from_findings(*_BAD_ARGUMENTS)),
    CheckRule(
        "no-stop-reason", WARNING, "An answer ended without a stop reason",
        "The answer ended, but no stop reason was sent, so it may be incomplete.",
        "The stream ends with `[DONE]`, and every `finish_reason` is null.",
        "Check the answer before you use it; do not run any call from it.",
        from_verdict("NO STOP REASON")),
    CheckRule(
        "text-unfinished", WARNING, "The text stops in the middle under a clean stop reason",
        "The stop reason says that the answer ended, and its text ends in a comma, an open bracket, an open code "
        "fence, or a word that rarely ends a text. It is a guess that the answer was cut: some routers and servers "
        "report `stop` when they do not know the reason.",
        "`finish_reason` is `stop`, and the last words are `because the migration took the`.",
        "Read the end of the text; if it was cut, ask for the rest, and look at the server's log.",
        from_verdict("TEXT UNFINISHED")),
    CheckRule(
        "unknown-stop-reason", WARNING, "A stop reason that no table knows",
        "The provider sent a stop reason that is not in its documentation. Programs that treat unknown values as a "
        "normal end accept cut answers.",
        '`finish_reason` is `model_length`.',
        "Name the server with --profile, or report the word.",
        first_of(from_findings("stop.unknown_word"), from_verdict("UNKNOWN REASON"))),
    CheckRule(
        "stream-broken", ERROR, "An answer broke off and was not replaced",
        "The connection ended before the answer did, the provider gave it up without a reason, or the body contains "
        "no answer; and no later request of the turn got the answer.",
        "The body ends in the middle of an event.",
        "Send the request again. If that ends in the same way, look at the body: if it was read in the wrong format, "
        "name the right one with `--api`.",
        from_verdict("INTERRUPTED", "NO ANSWER")),
    CheckRule(
        "answer-gap", ERROR, "Bytes of an answer are missing",
        "A frame of the stream could not be read, so part of the answer is missing; or a JSON object has a duplicate "
        "key with two values, so one value is lost.",
        "One event is cut in the middle, and the next ones are complete.",
        "Send the request again; look at the proxies between the server and the client.",
        from_verdict("GAP IN THE ANSWER")),
    CheckRule(
        "malformed-call", ERROR, "A tool call that nothing can run",
        "The provider reported a call that is malformed, or of a tool that the request does not declare, and dropped "
        "it; it never came well-formed.",
        "Gemini ends with `MALFORMED_FUNCTION_CALL`, or with `UNEXPECTED_TOOL_CALL` if no tool was declared.",
        "Ask for the call again, with a simpler schema; under UNEXPECTED_TOOL_CALL declare the tool, or tell the model "
        "that it has none.",
        from_verdict("MALFORMED CALL")),
    CheckRule(
        "thinking-ate-budget", ERROR, "Reasoning used up the output budget",
        "The answer was cut, and reasoning took at least nine tenths of its output tokens, or is all that came. A "
        "server without a reasoning parser leaves it in the text, after a mark such as `<think>`.",
        "1,024 of 1,024 output tokens are reasoning tokens, and the text is empty.",
        "Raise max_tokens or lower the reasoning effort.",
        finders.thinking_ate_budget),
    CheckRule(
        "budget-shrank", WARNING, "The budget shrank between two attempts",
        "An answer was cut, and the request for the rest has a smaller cap than the one that was cut.",
        "The first request has max_tokens 4,096, its continuation 1,024.",
        "Give a continuation at least the budget that was too small.",
        finders.budget_shrank),
    CheckRule(
        "small-default-cap", WARNING, "A cut at a cap that perhaps nobody chose",
        "The answer was cut, and its request sets no cap, so the server's default cut it; or the cap equals the "
        "default of a library, so perhaps nobody chose it.",
        "`max_tokens` is 1,024 in a request to Anthropic, and the answer is cut there.",
        "Set max_tokens to what the answer needs; `inspector tune` finds it.",
        finders.small_default_cap),
    CheckRule(
        "context-full", ERROR, "The context was full",
        "The model's context was full before the answer was complete, or the request did not fit in it.",
        '`stop_reason` is `model_context_window_exceeded`.',
        "Shorten the history; another continuation cannot succeed.",
        from_verdict("CONTEXT FULL")),
    CheckRule(
        "context-taken-as-budget", ERROR, "A full context was treated as a spent budget",
        "The context was full, and the agent asked for the rest, as if max_tokens had cut the answer. That request "
        "is longer than the one that did not fit.",
        '`stop_reason` is `model_context_window_exceeded`, and a continuation follows.',
        "Compact the history before anything else is sent.",
        finders.context_as_budget),
    CheckRule(
        "pause-taken-as-end", ERROR, "A pause was treated as the end of the turn",
        "The provider paused a long turn, and instead of resuming it the conversation went on with a new message.",
        '`stop_reason` is `pause_turn`, and the next request holds a new user message.',
        "Send the paused answer back unchanged, so that the provider can finish it.",
        finders.pause_as_end),
    CheckRule(
        "answer-paused", WARNING, "The recording ends with a paused answer",
        "The provider paused a long turn, or accepted the request to answer it later, and no recorded request "
        "resumed the turn or got the answer.",
        '`status` is `queued`, and no request for the answer follows.',
        "Send a paused answer back unchanged; ask for a queued one by its id until it is there.",
        unless(finders.pause_as_end, from_verdict("PAUSED"))),
    CheckRule(
        "history-refused", WARNING, "A history that strict servers refuse",
        "The request holds calls without results, results without calls, empty texts or roles in an order that "
        "the provider's own server refuses. The one that answered was lenient.",
        "A message with `tool_calls` is followed by a user message.",
        "Answer every call, even one that was not run.",
        finders.history_refused),
    CheckRule(
        "cache-prefix-rewritten", INFO, "The cached beginning of the history was rewritten",
        "A request changed messages that the one before it had sent, and the provider's cache was lost with them: "
        "every token of the history was paid for again.",
        "The system prompt contains the time of day.",
        "Only append to the history; put parts that change last.",
        finders.cache_prefix_rewritten),
    CheckRule(
        "answer-blocked", WARNING, "An answer was filtered or declined",
        "A filter of the provider took the answer away or masked parts of it, or the model declined to give one.",
        '`finishReason` is `SAFETY`.',
        "Change the prompt or the filter; a continuation will not help.",
        from_verdict("BLOCKED")),
    CheckRule(
        "provider-error", WARNING, "A turn ended with an error of the provider",
        "The last request of the turn was answered with an error, and no recorded request took its place.",
        "HTTP status 429, and no request follows.",
        "If the error is temporary, retry with a delay; otherwise change the request, the key or the model's name.",
        from_verdict("ERROR")),
    CheckRule(
        "cut-and-continued", INFO, "A cut answer was continued to its end",
        "The answer was cut, and the agent asked for the rest and got it. The turn is complete, but took more than "
        "one request.",
        "Two segments, the first with `length`, the second with `stop`.",
        "Raise max_tokens if that happens often.",
        from_verdict("CUT, COMPLETED", "CALL REPAIRED", "LIMIT REACHED")),
    CheckRule(
        "end-not-recorded", INFO, "How an answer ended was not recorded",
        "The file does not say how the answer ended: its recorder keeps no stop reason, or the recording is cut.",
        "The last row of a transcript has no stop reason.",
        "Run the agent with `inspector record`, which keeps the end of every answer.",
        first_of(from_verdict("END NOT RECORDED", "RECORDING CUT", "NOT RECORDED"),
                 from_findings("agent.ran_call_of_unseen_end"))),
)
RULES: Mapping[str, CheckRule] = {rule.id: rule for rule in _EVERY}


def rule_named(name: str) -> CheckRule:
    """The rule with this id. Raises `CallerError` if there is none; the nearest is named."""
    if name in RULES:
        return RULES[name]
    raise CallerError(f"{name!r} is not a rule{suggestion(name, RULES)}: `inspector rule` lists them")


def selected_rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Sequence[str]:
    """The ids of the rules that are selected (without `select`, all) and not ignored; patterns may contain `*`. Raises
    `CallerError` if a pattern matches no rule, or none is left."""
    wanted, left_out = (set(_matching(patterns)) for patterns in (select, ignore))
    left = [name for name in RULES if (not wanted or name in wanted) and name not in left_out]
    if not left:
        raise CallerError("--ignore leaves out every rule, so nothing would be checked")
    return left


def _matching(patterns: Iterable[str]) -> Iterable[str]:
    for pattern in patterns:
        found = [name for name in RULES if fnmatchcase(name, pattern)]  # `fnmatch` would ignore case on Windows
        if not found:
            rule_named(pattern)  # raises an error that names the nearest rule
        yield from found
