"""The schema of a configuration file as pydantic models; imported only if a file exists."""

from __future__ import annotations

import os
import stat
import tomllib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from inspector.config.settings import suggestion
from loop_core.errors import CallerError
from loop_core.turn.limits import RANGES, SCOPES


class Strict(BaseModel):
    """A model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", strict=True)


_LIMITS: dict[str, Any] = {
    name: (Annotated[int, Field(ge=low, le=high)] | None, None) for name, (low, high) in RANGES.items()
}
_LIMITS["attempts_scope"] = (Annotated[str, Field(pattern=f"^({'|'.join(SCOPES)})$")] | None, None)
Agent = create_model("Agent", __base__=Strict, **_LIMITS)
"""The table `[agent]` of a configuration file: the limits by their names."""


Amount = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class PriceModel(Strict):
    """The prices of one model, per million tokens."""

    input: Amount
    output: Amount
    cached_input: Amount | None = None
    cache_write: Amount | None = None
    reasoning: Amount | None = None


class ConfigFile(Strict):
    """A configuration file."""

    agent: Agent = Field(default_factory=Agent)  # type: ignore[valid-type]
    policy: str | None = None
    seam: str | None = None
    method: str | None = None
    allow_silence: Literal["yes", "no"] | None = None
    theme: str | None = None
    ascii: bool | None = None
    keys: dict[str, str] = Field(default_factory=dict)
    """Id of a binding -> its keys, as in `"step.forward" = "space,right"`."""
    currency: Annotated[str, Field(max_length=12)] | None = None
    prices: dict[str, PriceModel] = Field(default_factory=dict)
    """Name of a model -> the prices of its tokens."""


MOST_BYTES = 1 << 20
"""The largest size of a configuration file in bytes."""


def read(path: str) -> dict[str, object]:
    """The values of one file, by dotted name. Raises `CallerError` if it cannot be read, is not TOML, or has an invalid
    value."""
    try:
        document = tomllib.loads(_bytes(path).decode("utf-8-sig"))
        parsed = ConfigFile.model_validate(document)
    except OSError as why:
        raise CallerError(f"{path}: cannot be read: {why.strerror or why}") from None
    except UnicodeDecodeError as why:
        raise CallerError(f"{path}: byte {why.start} is not UTF-8") from None
    except tomllib.TOMLDecodeError as why:
        raise CallerError(f"{path}: invalid TOML: {why}") from None
    except RecursionError:
        raise CallerError(f"{path}: it is nested too deeply") from None
    except ValidationError as why:
        raise CallerError(f"{path}: {_first(why)}") from None
    values = parsed.model_dump(exclude_none=True)
    tables = {table: values.pop(table) for table in ("agent", "keys", "prices")}
    return {**values, **{f"{table}.{name}": value for table, rows in tables.items() for name, value in rows.items()}}


def _bytes(path: str) -> bytes:
    """The bytes of a file. Raises `OSError` if it cannot be read, and `CallerError` if it is too large or not a regular
    file (reading a FIFO would wait)."""
    if path != os.devnull and not os.path.isdir(path) and not stat.S_ISREG(os.stat(path).st_mode):
        raise CallerError(f"{path}: a FIFO or a device: expected a regular file")
    with open(path, "rb") as file:
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise CallerError(f"{path}: larger than {MOST_BYTES:,} bytes")
    return found


def _first(why: ValidationError) -> str:
    errors = why.errors(include_url=False, include_input=False)
    # First a misspelt name, because the correct one may be reported as missing.
    error = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg'][0].lower()}{error['msg'][1:]}"
    inner: dict[Any, type[BaseModel]] = {"agent": Agent, "prices": PriceModel}
    table = inner.get(error["loc"][0], ConfigFile) if len(error["loc"]) > 1 else ConfigFile
    return f"{place}: there is no such value{suggestion(str(error['loc'][-1]), table.model_fields)}"
