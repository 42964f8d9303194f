"""The words in the form of a what-if: its fields, their labels, and the meaning of each field and word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from inspector.config.settings import INITIAL
from inspector.report.lines.merged import RULE_MEANS
from loop_core.turn.continuation import SeamRule
from loop_core.turn.limits import SHORT_NAMES, Limits
from loop_core.turn.presets import preset

FIELDS = (*SHORT_NAMES, INITIAL)
"""The fields for a typed number."""
WORDS = ("policy", "seam", "method", "profile", "source")
"""The fields with a choice of a few words."""
DEFAULT = "default"
OTHER_LIMITS = "others"
"""The field for all limits that have no own field."""
FIELD_LABELS: Mapping[str, str] = {
    "continuation_max_attempts": "attempts: continuations",
    "continuation_max_total_completion_tokens": "cont_tokens: of cut answers",
    "continuation_max_output_chars": "cont_chars: characters",
    "continuation_tool_repair_attempts": "repairs: of cut calls",
    INITIAL: "max_tokens: first request",
    "policy": "policy: whose rules",
    "seam": "seam rule: how joined",
    "method": "continue by",
    "profile": "server profile: who answered",
    "source": "answers from",
    OTHER_LIMITS: "other limits, NAME=VALUE",
}
"""Field -> its label."""
FIELD_DETAILS: Mapping[str, str] = {
    "continuation_max_attempts": "how often a cut answer is continued",
    "continuation_max_total_completion_tokens": "output tokens of cut answers and their continuations, together",
    "continuation_max_output_chars": "characters of all answers together",
    "continuation_tool_repair_attempts": "how often a cut call is asked for again",
    INITIAL: "output cap of the first request",
    "policy": "whose rules decide what is run, continued or abandoned",
    "seam": "how two segments are joined: how much repeated text is left out",
    "method": "how a cut answer is asked to go on: prefill, a quoted anchor, or a hint",
    "profile": "every answer is read as if this server had sent it; a letter goes to the next name",
    "source": "recording: as it is; simulation: the known output cut again, a guess; live: the provider is asked",
    OTHER_LIMITS: ", ".join(each.name for each in fields(Limits) if each.name not in SHORT_NAMES),
}
"""Field -> the explanation of what it changes."""


def others_in_force(limits: Limits) -> str:
    """The hint in the empty field of other limits: some of them, with the values in force."""
    return f"max_tool_steps={limits.max_tool_steps} max_resumes={limits.max_resumes}"


def word_meaning(name: str, word: str) -> str:
    """The meaning of a word of a field, such as a policy or a seam rule; empty if the word needs no explanation."""
    if name == "policy":
        return f"{word}: {preset(word).title} · p compares them all"
    return f"{word}: {RULE_MEANS[SeamRule(word)]}" if name == "seam" and word != DEFAULT else ""
