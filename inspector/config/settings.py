"""The settings of a replay as a value, their typed form, and the command line that gives the same replay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from loop_core.errors import CallerError
from loop_core.turn.continuation import Method, SeamRule
from loop_core.turn.limits import MOST, SHORT_NAMES, Limits, whole_number
from loop_core.turn.policy import STRICT, Policy
from loop_core.turn.presets import preset
from loop_core.wire.profiles import PROFILES

INITIAL = "max_tokens"
"""The name of the setting for the initial output cap."""
FULL_NAMES = {short: name for name, short in SHORT_NAMES.items()}
"""Short name -> name of the continuation limit; an operator may type either."""
EDIT = "edit."
"""The prefix of a setting that edits an input: `edit.2.3` is input 3 of turn 2."""


class TurnEdit(NamedTuple):
    """Another text for one input of a turn: a message of its first request, or the result of a tool."""

    turn: int
    """The number of the turn, from 1."""
    input: int
    """The number of the input, from 1, in the order in which the turn received its inputs."""
    text: str

    @property
    def id(self) -> str:
        """The id of the turn."""
        return f"t{self.turn}"

    @property
    def name(self) -> str:
        """The name of this edit among the settings."""
        return f"{EDIT}{self.turn}.{self.input}"


class Price(NamedTuple):
    """The prices of one model per million tokens, by kind of token."""

    input: float
    output: float
    cached_input: float | None = None
    """The price of input from the provider's cache; None: unknown, like the cost of a response with such input."""
    cache_write: float | None = None
    """The price of input that was written to the cache, if the provider counts it separately."""
    reasoning: float | None = None
    """The price of reasoning; None: reasoning costs as much as other output."""


class PriceTable(NamedTuple):
    """The configured prices; none are built in."""

    models: tuple[tuple[str, Price], ...] = ()
    """Pairs of a model's name, or `BEGINNING*`, and its price. An exact name wins, then the longest beginning."""
    currency: str = ""
    """The text after an amount of money; empty if it is not configured."""

    def of(self, model: str | None) -> Price | None:
        """The price of a model; None if the table does not name it."""
        fitting = [(name, price) for name, price in self.models if model is not None and (
            model.startswith(name[:-1]) if name.endswith("*") else model == name)]
        return max(fitting, key=lambda pair: (not pair[0].endswith("*"), len(pair[0])))[1] if fitting else None

    def amount_text(self, amount: float) -> str:
        """An amount of money, as screens and reports write it."""
        digits = 4 if amount >= 0.001 or not amount else 6
        return f"{amount:,.{digits}f} {self.currency}".rstrip()


NO_PRICES = PriceTable()


REPLAYED = Limits(max_empty_retries=0)
"""The default limits of a replay. An empty answer is not requested again, because nobody could answer."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The values that a replay may change."""

    limits: Limits = field(default_factory=lambda: REPLAYED)
    policy: Policy = STRICT
    max_tokens: int | None = None
    """An initial max_tokens instead of the recorded one; only a simulation or a live run can answer it."""
    explicit: frozenset[str] = frozenset()
    """The names of the limits that the operator set. They take precedence over limits in a session file."""
    configured: frozenset[str] = frozenset()
    """The names of the limits that a configuration set. Limits in a session file take precedence over them."""
    seam: SeamRule | None = None
    """The rule by which segments are joined; None: that of the policy."""
    method: Method | None = None
    """The method by which a cut text is continued; None: the first of the policy's methods that the server allows."""
    profile: str | None = None
    """The server profile for every exchange; None: the one that was recognised when the exchange was read."""
    simulate: bool = False
    """Whether answers that the recording lacks are simulated from the output known so far."""
    allow_silence: bool | None = None
    """Whether an answer without visible content counts as intended; None: as the policy says."""
    live: str | None = None
    """The name of the live run whose answers are used from the first step of these settings."""
    edits: tuple[TurnEdit, ...] = ()
    """The edited inputs of turns."""
    prices: PriceTable = field(default=NO_PRICES, compare=False)
    """The operator's prices of tokens; they change no run."""

    @property
    def belief(self) -> Policy:
        """The policy in force, with the configured seam rule and method of continuation."""
        policy = self.policy
        if self.seam is not None:
            policy = replace(policy, seam=self.seam)
        if self.method is not None:
            policy = replace(policy, methods=(self.method,))
        if self.allow_silence is not None:
            policy = replace(policy, allow_silence=self.allow_silence)
        return policy


def _cap(text: str) -> int | None:
    if text.strip().lower() in ("", "none", "default", "recorded"):
        return None
    number = whole_number(text)
    if number is None or not 1 <= number <= MOST:
        raise CallerError(f"{INITIAL}: {text!r} is not a whole number from 1 to {MOST:,}")
    return number


STAND_IN = "-stand-in"
"""The end of the name of a live run that this program's stand-in answered, instead of a provider."""
_RUN = rf"\d{{8}}-\d{{6}}-\d{{6}}(?:{STAND_IN})?"


def live_run(text: str) -> str:
    """The name of a live run, which is also the name of its file. Raises `CallerError` if it is not such a name."""
    if re.fullmatch(_RUN, text.strip()) is None:
        raise CallerError(f"live: {text!r} names no live run; expected a name such as 20260131-235959-000000")
    return text.strip()


def _edit(name: str, text: str) -> TurnEdit:
    found = re.fullmatch(r"edit\.(\d{1,9})\.(\d{1,9})", name)
    if found is None:
        raise CallerError(f"{name}: expected the number of a turn and of one of its inputs, such as edit.2.3")
    return TurnEdit(int(found[1]), int(found[2]), text)


def _one_of(name: str, words: Mapping[str, Any], text: str) -> Any:
    plain = text.strip().lower()
    if plain in ("", "none", "default"):
        return None
    if plain not in words:
        raise CallerError(f"{name}: {text!r} is not one of {', '.join(words)}")
    return words[plain]


def _yes_or_no(on: bool) -> str:
    return "yes" if on else "no"


SEAMS: Mapping[str, SeamRule] = {rule.value: rule for rule in SeamRule}
METHODS: Mapping[str, Method] = {each.value: each for each in (Method.PREFILL, Method.ANCHOR, Method.HINT)}
"""Name -> a continuation method that a loop can choose; the others depend on what the provider sent."""
ANSWERS: Mapping[str, bool] = {"yes": True, "no": False}
PROFILE_NAMES: Mapping[str, str] = {name: name for name in sorted(PROFILES)}


class SettingChoice(NamedTuple):
    """How a setting other than a limit is parsed from typed text, and how its value is written."""

    parse: Callable[[str], Any]
    """Converts typed text to the value; raises CallerError if the text is not valid."""
    write: Callable[[Any], str] = str
    words: tuple[str, ...] = ()
    """The allowed words, if the value is one of a closed list."""


def live_limits(settings: Settings, limits: Limits | None = None) -> Limits:
    """The limits of a live run: the operator's, else the engine's defaults."""
    limits = limits or settings.limits
    if "max_empty_retries" in settings.explicit | settings.configured:
        return limits
    return replace(limits, max_empty_retries=Limits().max_empty_retries)


LIMITS = tuple(field.name for field in fields(Limits))
CHOICES: Mapping[str, SettingChoice] = {
    INITIAL: SettingChoice(_cap),
    "policy": SettingChoice(preset, lambda policy: policy.name),
    "seam": SettingChoice(lambda text: _one_of("seam", SEAMS, text), lambda rule: rule.value, tuple(SEAMS)),
    "method": SettingChoice(lambda text: _one_of("method", METHODS, text), lambda method: method.value, tuple(METHODS)),
    "profile": SettingChoice(lambda text: _one_of("profile", PROFILE_NAMES, text), str, tuple(PROFILE_NAMES)),
    "simulate": SettingChoice(lambda text: _one_of("simulate", ANSWERS, text) is True, _yes_or_no),
    "allow_silence": SettingChoice(lambda text: _one_of("allow_silence", ANSWERS, text), _yes_or_no, tuple(ANSWERS)),
    "live": SettingChoice(live_run),
}
"""Field of `Settings` -> how its value is parsed and written."""


def settings_of(assignments: Mapping[str, str], base: Settings) -> Settings:
    """`base` changed by `NAME=VALUE` assignments: any limit by either of its names, the names of `CHOICES`, and edited
    inputs (`edit.TURN.INPUT`). Raises `CallerError` for an unknown name, or a value out of range."""
    edits = {name: _edit(name, value) for name, value in assignments.items() if name.startswith(EDIT)}
    named_limits = {name: value for name, value in assignments.items() if name not in CHOICES and name not in edits}
    named_limits = {FULL_NAMES.get(name, name): value for name, value in named_limits.items()}
    for name in named_limits:
        if name not in LIMITS:
            raise CallerError(f"unknown setting {name!r}{nearest(name, (*CHOICES, *LIMITS))}")
    others = {name: CHOICES[name].parse(value) for name, value in assignments.items() if name in CHOICES}
    others = _with_simulation(others, base)
    limits = base.limits.with_values(named_limits)
    every = {edit.name: edit for edit in base.edits} | edits
    explicit = base.explicit | named_limits.keys()
    return replace(base, limits=limits, explicit=explicit, edits=tuple(every.values()), **others)


def nearest(word: str, words: Sequence[str]) -> str:
    """The word that may be meant, as the end of a message; all words if none is similar."""
    return suggestion(word, words) or f"; expected one of {', '.join(words)}"


def suggestion(word: str, words: Iterable[str]) -> str:
    """The word that may be meant, as the end of a message; empty if none is similar."""
    from difflib import get_close_matches

    near = get_close_matches(word, words, 1)
    return f"; did you mean {near[0]}?" if near else ""


def settings_asked(assignments: Mapping[str, str], base: Settings) -> Settings:
    """`settings_of` for a live run: the provider answers at any max_tokens, so nothing is simulated. Raises
    `CallerError` for an unknown name, or a value out of range."""
    return settings_of({"simulate": "yes" if base.simulate else "no", **assignments}, base)


def _with_simulation(others: dict[str, Any], base: Settings) -> dict[str, Any]:
    """The settings with `simulate` derived from max_tokens, because recorded answers do not belong to another value."""
    cap, simulate = others.get(INITIAL), others.get("simulate")
    if cap is not None and simulate is None and "live" not in others:
        return {**others, "simulate": True}
    if simulate is False and base.simulate and INITIAL not in others:
        return {**others, INITIAL: None}
    return others


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Parses `NAME=VALUE` words of a command line. Raises `CallerError` if one of them has no `=`."""
    found: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise CallerError(f"--set {text!r}: expected NAME=VALUE, such as continuation_max_attempts=5")
        found[name.strip()] = value.strip()
    return found


def name_of(before: Settings, after: Settings) -> str:
    """The difference of two settings as a short name; `unchanged` if they are equal."""
    words = [
        f"{SHORT_NAMES.get(name, name)}={value}" for name, value in _limits(after)
        if getattr(before.limits, name) != value or name in after.explicit - before.explicit
    ]
    words += [
        f"{name}={_write(name, after)}" for name in CHOICES
        if name not in ("simulate", "live") and getattr(before, name) != getattr(after, name)
    ]
    implied = after.simulate and after.max_tokens is not None and before.max_tokens != after.max_tokens
    if before.simulate != after.simulate and not implied:
        words.append(f"simulation {'on' if after.simulate else 'off'}")
    if after.live is not None and before.live != after.live:
        day, time, *_ = after.live.split("-")
        who = "stand-in" if after.live.endswith(STAND_IN) else "live"
        words.append(f"{who} {day} {time[:2]}:{time[2:4]}:{time[4:]}")
    words += [f"input {edit.input} of turn {edit.turn} edited" for edit in after.edits if edit not in before.edits]
    return ", ".join(words) or "unchanged"


def assignments(settings: Settings, before: Settings | None = None) -> dict[str, str]:
    """The assignments that turn `before` (the defaults) into these settings, as an operator types them."""
    before = before or Settings()
    found = {name: str(value) for name, value in _limits(settings)
             if name in settings.explicit - before.explicit or value != getattr(before.limits, name)}
    found |= {name: _write(name, settings) for name in CHOICES if getattr(settings, name) != getattr(before, name)}
    found |= {edit.name: edit.text for edit in settings.edits if edit not in before.edits}
    if INITIAL in found and settings.max_tokens is not None and "live" not in found:
        found.pop("simulate", None)  # another max_tokens implies it
        return found if settings.simulate else {**found, "simulate": "no"}
    return found


def argument(path: str) -> str:
    """A path that no command takes for an option; `-` is standard input."""
    return f"./{path}" if path.startswith("-") and path != "-" else path


def command(
    paths: Sequence[str], settings: Settings, api: str | None = None, profile: str | None = None, since: int = 0,
    earlier: Sequence[tuple[int, Settings]] = (), verb: str = "replay",
) -> str:
    """The command line that gives the same replay without the app. `since` is the index of the step from which the
    settings hold; `earlier` has the steps and settings before it."""
    import shlex

    words = ["inspector", verb, *map(argument, paths)]
    for option, option_value in (("--api", api), ("--profile", profile)):
        words += [option, option_value] if option_value is not None else []
    before = Settings()
    stretches = [*earlier, (since, settings)]
    alone = len(stretches) == 2 and not assignments(stretches[0][1])  # otherwise each setting names its step
    for first, current in stretches:
        for name, value in assignments(current, before).items():
            if name == "policy" and (first == 0 or alone):
                words += ["--policy", value]
            elif name == "simulate" and value == "yes" and (first == 0 or alone):
                words += ["--simulate"]
            elif name.startswith(EDIT):
                words += ["--edit", f"{name.removeprefix(EDIT)}={'@' if value.startswith('@') else ''}{value}"]
            else:
                words += ["--set", f"{name}={value}" + ("" if first == 0 or alone else f"@{first + 1}")]
        before = current
    if alone:
        words += ["--from-step", str(since + 1)]
    return shlex.join(words)


def parse_stretches(
    assignments: Sequence[str], from_step: int | None = None
) -> list[tuple[int | None, dict[str, str]]]:
    """Parses `NAME=VALUE` and `NAME=VALUE@STEP` words of a command line: settings, after the index of the step from
    which they hold (None without a step). Raises `CallerError` if a word has no `=`, or a step that is not a number
    from 1 on."""
    found: dict[int | None, list[str]] = {}
    for text in assignments:
        setting, at, step = text.rpartition("@") if "@" in text else (text, "", "")
        if at and (re.fullmatch("[0-9]{1,9}", step) is None or int(step) < 1):
            raise CallerError(f"--set {text!r}: expected the number of a step after @, such as max_tokens=80@7")
        number = int(step) if at else from_step
        found.setdefault(None if number is None else number - 1, []).append(setting)
    ordered = sorted(found.items(), key=lambda each: -1 if each[0] is None else each[0])
    return [(since, parse_assignments(texts)) for since, texts in ordered]


def record_of(settings: Settings) -> dict[str, Any]:
    """The settings as plain values for a file, without defaults."""
    every = assignments(settings)
    inherited = {name: every.pop(name) for name in [*every]
                 if name not in CHOICES and name not in settings.explicit and not name.startswith(EDIT)}
    return {name: value for name, value in (("set", every), ("inherited", inherited)) if value}


def from_record(record: Mapping[str, Any]) -> Settings:
    """The settings from the values that `record_of` wrote. Raises `CallerError` if they are not valid."""
    parts: list[dict[str, str]] = []
    for name in ("inherited", "set"):
        part = record.get(name, {})
        if not isinstance(part, dict) or not all(isinstance(value, str) for value in part.values()):
            raise CallerError(f"{name}: expected an object of texts")
        parts.append(part)
    base = replace(settings_of(parts[0], Settings()), explicit=frozenset())
    return settings_of(parts[1], base)


def _limits(settings: Settings) -> list[tuple[str, Any]]:
    return [(name, getattr(settings.limits, name)) for name in LIMITS]


def _write(name: str, settings: Settings) -> str:
    value = getattr(settings, name)
    return "default" if value is None else CHOICES[name].write(value)
