"""What agents write where a call did not run, or where the user stopped them: tables of their own wordings.

A result that says so is no answer of the tool. The wordings are the agents' own constants, so each is looked for at the
beginning of a text and nowhere else: a file that a tool has read may hold any sentence.

Further down: how the network libraries of agents say that a connection was lost.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from loop_core.values import ToolResultPart


class Refusal(NamedTuple):
    """One wording by which a result says that its call did not run."""

    name: str
    pattern: str
    """Matched at the beginning of the result: lower case, white space folded, the marks of an error left out."""
    why: str
    source: str


REFUSALS: tuple[Refusal, ...] = (
    Refusal("user_refused", r"the user doesn't want to proceed with this tool use\b", "the user refused it",
            "Claude Code"),
    Refusal("user_cancelled", r"the user doesn't want to take this action right now\b", "the user refused it",
            "Claude Code; also where the turn was stopped before the call began"),
    Refusal("user_denied", r"permission for this tool use was denied\b", "the user refused it",
            "Claude Code, subagents"),
    Refusal("plan_refused", r"the agent proposed a plan that was rejected by the user\b", "the user refused the plan",
            "Claude Code"),
    Refusal("not_granted", r"claude requested permissions? .{0,500}haven't granted it yet", "a permission was missing",
            "Claude Code"),
    Refusal("rule_denied", r"permission to (?:use|read|edit|write) .{0,500}\bdenied\b", "a permission rule refused it",
            "Claude Code"),
    Refusal("hook_blocked", r"(?:pretooluse:\S+ hook|hook pretooluse:\S+|execution stopped by pretooluse hook|"
            r"\S+ operation blocked by hook)\b", "a hook refused it", "Claude Code"),
    Refusal("input_refused", r"inputvalidationerror\b", "the agent refused its arguments", "Claude Code"),
    Refusal("validation_failed", r"validation failed for tool\b", "the agent refused its arguments", "pi"),
    Refusal("no_such_tool", r"(?:no such tool available\b|tool \S+ not found\b)", "the agent knows no such tool",
            "Claude Code; pi"),
    Refusal("blocked", r"tool execution was blocked\b", "an extension refused it", "pi"),
    Refusal("skipped", r"skipped due to queued user message\b", "the user spoke first, and it was skipped", "pi"),
)
"""In this order; the first that fits names the refusal."""
_ANY = re.compile("|".join(row.pattern for row in REFUSALS))

STOPS = "stop what you are doing and wait for the user"
"""Ends a refusal after which the agent does not go on by itself."""
_LONG = 600
_MARKS = re.compile(r"^(?:</?(?:tool_use_error|error)>|error:|\s)+")

_INTERRUPTION = re.compile(
    r"\s*\[Request (?:interrupted|cancell?ed|aborted) by (?:the )?user(?P<tool> for tool use)?[^\]\n]{0,80}\]"
)
_PLACEHOLDER = re.compile(r"\s*(?:<error>)?\s*Interrupted by user\s*(?:</error>)?\s*$", re.IGNORECASE)


class Interruption(NamedTuple):
    """The mark by which an agent notes that the user stopped it, and what the user wrote behind it."""

    at_tool: bool
    """Whether a tool was running, or waited to be allowed: the answer was whole by then."""
    rest: str


def refusal(part: ToolResultPart) -> Refusal | None:
    """The wording by which a result says that its call did not run; None where it says nothing of it."""
    said = _folded(part.text)
    if _ANY.match(said) is None:
        return None  # as nearly all results
    return next((row for row in REFUSALS if re.match(row.pattern, said)), None)


def why_refused(part: ToolResultPart, denied: bool = False) -> str | None:
    """The same in words; None where the call may have run. `denied`: the row around it says that the user refused."""
    row = refusal(part)
    if row is None:
        return f"{REFUSALS[0].why}: it did not run" if denied else None
    return f"{row.why}: it did not run"


def stops(part: ToolResultPart) -> bool:
    """Whether the agent was told to stop and wait: the turn is over until the user speaks."""
    return STOPS in part.text[:_LONG].lower() and refusal(part) is not None


def interruption(text: str) -> Interruption | None:
    """The mark of an interruption that a text begins with; None where it begins with none."""
    found = _INTERRUPTION.match(text)
    return None if found is None else Interruption(found["tool"] is not None, text[found.end() :].strip())


def placeholder(part: ToolResultPart) -> bool:
    """Whether a result only stands where the user's interruption left none: it shows nothing of the call."""
    found = interruption(part.text)
    return (found is not None and not found.at_tool) or _PLACEHOLDER.match(part.text) is not None


def _folded(text: str) -> str:
    folded = " ".join(text[:_LONG].lower().replace("\u2019", "'").split())
    return _MARKS.sub("", folded)


# -- How the network libraries of agents say that a connection was lost ----------------------------------------------
# Such a request is sent again as it was.

LOST: tuple[str, ...] = (
    r"terminated", r"fetch failed", r"failed to fetch", r"socket hang up", r"other side closed", r"premature close",
    r"connection error", r"connection (?:was )?(?:lost|reset|closed|aborted|refused)",
    r"network (?:error|connection lost)", r"timed? ?out",
    r"stream (?:was )?(?:closed|ended) (?:unexpectedly|early|before)",
    r"e(?:connreset|pipe|timedout|hostunreach|ai_again)",
    r"und_err_\w+", r"incomplete chunked read", r"peer closed connection",
)
"""Wordings of undici, Node.js, Bun, httpx and the providers' SDKs."""
_LOST = re.compile(rf"\b(?:{'|'.join(LOST)})\b", re.IGNORECASE)
_LONG_NOTE = 400


def connection_lost(message: str) -> bool:
    """Whether the message of a failed request says that its connection was lost."""
    return _LOST.search(message[:_LONG_NOTE]) is not None
