"""The configured prices of tokens, by model. No prices are built in; a model without a configured price has none.

A name that ends in `*` applies to every model that begins with the rest; an exact name takes precedence, then the
longest such name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

MILLION = 1_000_000


class Price(NamedTuple):
    """The prices of one model per million tokens, by kind of token."""

    input: float
    output: float
    cached_input: float | None = None
    """The price of input that was read from the provider's cache; None: unknown, so a response with such input has no
    cost."""
    cache_write: float | None = None
    """The price of input that was written to the cache, if the provider counts it separately."""
    reasoning: float | None = None
    """The price of reasoning; None: that of all other output."""


class PriceTable(NamedTuple):
    """The configured prices."""

    models: tuple[tuple[str, Price], ...] = ()
    """Name -> price; pairs, so that settings which hold it can be compared and kept."""
    currency: str = ""
    """The currency that is shown after an amount; empty if none is configured."""

    def of(self, model: str | None) -> Price | None:
        """The price of a model; None if the table does not name it."""
        fitting = [(name, price) for name, price in self.models if model is not None and _names(name, model)]
        return max(fitting, key=lambda pair: (not pair[0].endswith("*"), len(pair[0])))[1] if fitting else None

    def amount_text(self, amount: float) -> str:
        """An amount of money, as screens and reports write it."""
        digits = 4 if amount >= 0.001 or not amount else 6
        return f"{amount:,.{digits}f} {self.currency}".rstrip()


NO_PRICES = PriceTable()


def _names(name: str, model: str) -> bool:
    return model.startswith(name[:-1]) if name.endswith("*") else model == name


def price_table(models: Mapping[str, Mapping[str, float]], currency: str = "") -> PriceTable:
    """The price table of a configuration."""
    return PriceTable(tuple((name, Price(**values)) for name, values in models.items()), currency)
