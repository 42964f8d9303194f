"""The words about keys, tabs and fields: their names, the headings of the help, synonyms, the meanings of limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

from inspector.config.settings import INITIAL
from inspector.report.lines.glyphs import DIFF_FORMS, WIRE_FORMS
from inspector.report.lines.merged import RULE_MEANS
from loop_core.turn.continuation import SeamRule
from loop_core.turn.limits import SHORT_NAMES, Limits
from loop_core.turn.presets import preset

NAMES: Mapping[str, str] = {
    "space": "space", "backspace": "backspace", "enter": "enter", "escape": "esc", "pagedown": "Page Down",
    "pageup": "Page Up", "delete": "Delete", "shift+tab": "Shift+Tab",
    "home": "Home", "end": "End", "down": "↓", "up": "↑", "left": "←", "right": "→",
    "colon": ":", "exclamation_mark": "!", "slash": "/", "question_mark": "?",
    "left_square_bracket": "[", "right_square_bracket": "]",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "f1": "F1", "plus": "+", "minus": "-", "equals_sign": "=",
    "comma": ",", "full_stop": ".", "less_than_sign": "<", "greater_than_sign": ">",
    "semicolon": ";", "apostrophe": "'", "quotation_mark": '"',
}
SIGNS: Mapping[str, str] = {"backspace": "⌫"}
"""Key names that the key bar replaces with a sign of one cell."""
NARROW_SIGNS: Mapping[str, str] = {**SIGNS, "space": "␣"}
"""The signs in a narrow terminal, which include one for `space`; elsewhere the word is clearer."""


def name_of(key: str) -> str:
    """The name of a key as on a keyboard."""
    if key.startswith("ctrl+"):
        return f"ctrl+{NAMES.get(key[5:], key[5:])}"
    return NAMES.get(key, key)


def key_of(text: str) -> str:
    """The key for a displayed name: the reverse of `name_of`."""
    if text.startswith("^"):
        return f"ctrl+{text[1:]}"
    found = (key for names in (NARROW_SIGNS, NAMES) for key, name in names.items() if name == text)
    return next(found, text if len(text) == 1 else text.lower())


PURPOSES: Mapping[str, str] = {
    "Move": "step event turn continue command list text turns.open turns.go-to turns.attention attention mark.next "
            "mark.previous run.next run.previous fact slice tune policies.open policies.left policies.right "
            "policies.next policies.previous providers.open providers.next providers.previous beside pane cycle",
    "Find": "filter search turns.filter turns.search turns.next turns.previous breakpoints mark note stops",
    "Look": "tab verdict mode wrap zoom machine turns.sort turns.group turns.stop policies.each providers.each "
            "tune.show seam",
    "What if": "limits advice edit compare runs run rerun tree turns.tune turns.policies policies providers tune.axes "
               "tune.simulate tune.again tune.stop input form",
    "Live turn": "live picker.live providers.play calls result body budget ask begin",
    "Open, copy, export": "picker copy export report turns.export turns.copy tune.copy tune.copy-cell tune.export "
                          "beside.copy",
    "Help and leaving": "help palette theme back close quit interrupt suspend prompt choose beside.leave help.leave "
                        "tree.leave stops.leave verdict.leave",
}
"""Heading of the help, in order -> the ids of its bindings; an id without a dot stands for all ids that begin with it.
"""
EVERYWHERE = "Everywhere in the app"
_PURPOSE_OF = {name: purpose for purpose, names in PURPOSES.items() for name in names.split()}
ORDER = (*PURPOSES, EVERYWHERE)


def purpose_of(name: str) -> str:
    """The help heading of a binding."""
    return _PURPOSE_OF.get(name) or _PURPOSE_OF.get(name.partition(".")[0], "Move")


SYNONYMS: Mapping[str, str] = {
    "back": "quit exit leave return", "quit": "exit leave end", "interrupt": "quit exit leave", "close": "cancel",
    "suspend": "shell background stop",
    "help": "keys shortcuts bindings", "theme": "colours colors dark light contrast", "search": "find grep",
    "turns.search": "find grep", "filter": "find narrow only", "turns.filter": "find narrow only",
    "compare": "diff difference two", "runs": "diff branches compare", "tab.diff": "changes compare",
    "tab.wire": "bytes raw http", "limits": "max_tokens change settings what if", "tune": "grid budget smallest sweep",
    "policies": "agents loops compare", "providers": "servers dialects compare", "export": "save write share html",
    "report": "issue evidence share", "copy": "clipboard yank", "picker.path": "load file folder",
    "live": "ask send request play", "attention": "problem error worst bad", "mark": "bookmark star",
    "note": "comment annotate remark", "command": "go jump line", "wrap": "long lines fold", "zoom": "maximise full",
    "edit.input": "message tool result change prompt", "advice": "fix follow apply", "turns.group": "folder file",
    "breakpoints": "stop debug pause", "turns.sort": "order column", "verdict": "why reason explain",
}
"""Id of a binding -> other words by which the palette finds it."""


class SheetTab(NamedTuple):
    """A tab of the session screen."""

    name: str
    key: str
    title: str
    about: str
    """What the help says about the tab."""
    forms: tuple[str, ...] = ()
    """The forms in which the tab shows the same step, the initial one first; empty if there is only one."""


TABS = (
    SheetTab("merged", "1", "Merged", "The merged text of the turn, its segments and seams",
             ("merged", "side by side")),
    SheetTab("response", "2", "Response", "The response at hand, parsed, with the evidence of its stop reason"),
    SheetTab("wire", "3", "Wire", "The bytes of the response: events, raw, hex, and the request",
             WIRE_FORMS),
    SheetTab("calls", "4", "Calls", "The tool calls of the turn, the held ones above all"),
    SheetTab("diff", "5", "Diff", "What the step changed, what the request added to the context, how a run differs",
             DIFF_FORMS),
    SheetTab("events", "6", "Events", "The structured events of the turn"),
    SheetTab("machine", "7", "Machine", "The state machine with the path taken"),
    SheetTab("steps", "8", "Steps", "The step list"),
)


def filter_terms() -> list[tuple[str, str]]:
    """The terms of a filter, one row each."""
    from inspector.report import filter_terms

    return [
        ("a b   a & b", "both"), ("a | b", "either"), ("!a", "not a"), ("(a | b) c", "grouped"),
        *((f"{name}:WORD", row.about) for name, row in filter_terms.WORDS.items()),
        *((name, row.about) for name, row in filter_terms.FLAGS.items()),
        *((f"{name}>N", row.about) for name, row in filter_terms.NUMBERS.items()),
        *((f"~{name} REGEX", f"a regular expression finds it in {row.about}")
          for name, row in filter_terms.PATTERNS.items()),
    ]


# -- The words about the fields of limits, and the meanings of their values ------------------------------------------


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
