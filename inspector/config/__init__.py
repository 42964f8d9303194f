"""Reads the configuration (limits, policy, theme, keys, prices) from files and environment variables. Options override
the environment, which overrides files.

Each value has its source. Without a file and a variable nothing is read, and pydantic is not imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from inspector.config import files
from inspector.config.settings import CHOICES, LIMITS, NO_PRICES, REPLAYED, Price, PriceTable, Settings
from loop_core.errors import CallerError
from loop_core.turn.limits import Limits

PREFIX = "LOOP_INSPECTOR_"
"""The prefix of every variable, as in LOOP_INSPECTOR_CONTINUATION_MAX_ATTEMPTS=5."""
AGENT = "agent"
"""The table of a configuration with the limits, by their names in ZeroClaw RFI 2309."""
KEYS = "keys"
PRICES = "prices"
NAMES = ("policy", "seam", "method", "allow_silence", "theme", "ascii", "currency")
"""The names of configured values other than limits, keys and prices."""
DEFAULT = "default"


class Value(NamedTuple):
    """One configured value and its source: a file, a variable, or `default`."""

    value: object
    origin: str


class Config(NamedTuple):
    """All configured values, by dotted name."""

    values: Mapping[str, Value] = {}

    @property
    def settings(self) -> Settings:
        """The initial settings of every replay."""
        limits = {name: str(each.value) for name in LIMITS if (each := self.values.get(f"{AGENT}.{name}"))}
        chosen = {name: CHOICES[name].parse(str(each.value)) for name in CHOICES if (each := self.values.get(name))}
        return Settings(
            limits=REPLAYED.with_values(limits), configured=frozenset(limits), prices=self.prices, **chosen)

    @property
    def judging(self) -> str:
        """The configured values under which turns may get another verdict, with their sources; empty for none."""
        sources: dict[str, list[str]] = {}
        for name, each in self.values.items():
            if name in CHOICES or name.startswith(f"{AGENT}."):
                sources.setdefault(each.origin, []).append(name.removeprefix(f"{AGENT}."))
        return " and ".join(f"{', '.join(names)} ({origin})" for origin, names in sources.items())

    @property
    def prices(self) -> PriceTable:
        """The configured prices of tokens."""
        models = {name.removeprefix(f"{PRICES}."): each.value for name, each in self.values.items()
                  if name.startswith(f"{PRICES}.") and isinstance(each.value, Mapping)}
        currency = self.values.get("currency")
        return price_table(models, "" if currency is None else str(currency.value)) if models else NO_PRICES

    @property
    def theme(self) -> str | None:
        """The configured theme."""
        found = self.values.get("theme")
        return None if found is None else str(found.value)

    @property
    def ascii(self) -> bool:
        """Whether the app and the reports use only ASCII."""
        found = self.values.get("ascii")
        return found is not None and _is_on(found.value)

    @property
    def keys(self) -> Mapping[str, str]:
        """Binding id -> its keys, comma-separated, which replace the default keys."""
        return {name.removeprefix(f"{KEYS}."): str(each.value) for name, each in self.values.items()
                if name.startswith(f"{KEYS}.")}


_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")


def _is_on(value: object) -> bool:
    """Whether a value of a file or a variable means yes. Raises `CallerError` if it means neither yes nor no."""
    word = str(value).strip().lower()
    if word not in (*_ON, *_OFF):
        raise CallerError(f"ascii: {word!r} is neither yes nor no")
    return word in _ON


def price_table(models: Mapping[str, Mapping[str, float]], currency: str) -> PriceTable:
    """The price table of a configuration."""
    return PriceTable(tuple((name, Price(**values)) for name, values in models.items()), currency)


def load(environment: Mapping[str, str] | None = None) -> Config:
    """Reads files and variables in order; later ones override earlier ones. Raises `CallerError` if a file cannot be
    read or has an invalid value; the message names file, value and what was expected."""
    variables = os.environ if environment is None else environment
    _refuse_misspelt(variables)
    found: dict[str, Value] = {}
    for path in files.config_files(variables):
        from inspector.config.model import read

        found |= {name: Value(value, path) for name, value in read(path).items()}
    for name in (*LIMITS, *NAMES):
        variable = PREFIX + name.upper()
        if variables.get(variable):
            dotted = name if name in NAMES else f"{AGENT}.{name}"
            found[dotted] = Value(variables[variable], f"${variable}")
    _check_values(found)
    return Config(found)


def _refuse_misspelt(variables: Mapping[str, str]) -> None:
    """Raises `CallerError` if a variable's name is similar to one of ours, because it would be ignored."""
    ours = (*(PREFIX + name.upper() for name in (*LIMITS, *NAMES)), files.CONFIG_VARIABLE, files.DATA_VARIABLE,
            files.CACHE_VARIABLE)
    for name in variables:
        if name.upper().startswith(PREFIX) and name not in ours:
            from difflib import get_close_matches

            near = get_close_matches(name.upper().removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in ours],
                                     1, 0.85)
            if near:
                raise CallerError(f"${name}: there is no such variable; did you mean {PREFIX}{near[0]}?")


def every(config: Config) -> list[tuple[str, Value]]:
    """Every value, with the default for those that are not configured."""
    plain = Settings()
    rows: dict[str, object] = {f"{AGENT}.{name}": getattr(plain.limits, name) for name in LIMITS}
    rows |= {name: plain.policy.name if name == "policy" else None for name in NAMES}
    rows["ascii"] = False
    entries = [(name, config.values.get(name, Value(value, DEFAULT))) for name, value in rows.items()]
    return entries + [(name, value) for name, value in config.values.items()
                      if name.startswith((f"{KEYS}.", f"{PRICES}."))]


def _check_values(values: Mapping[str, Value]) -> None:
    """Parses every value once by the engine's own rules, so that an error is reported with its file or variable."""
    for name, each in values.items():
        try:
            if name.startswith(f"{AGENT}."):
                Limits().with_values({name.removeprefix(f"{AGENT}."): str(each.value)})
            elif name in CHOICES:
                CHOICES[name].parse(str(each.value))
            elif name == "ascii":
                _is_on(each.value)
        except CallerError as why:
            raise CallerError(f"{each.origin}: {why}") from None
