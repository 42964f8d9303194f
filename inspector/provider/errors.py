"""Errors in the shape of each format's own server: kinds, codes and the member that is at fault.

Owns no rule about what is an error; whoever finds one raises `RequestError`.
"""

from __future__ import annotations

from loop_core.wire import wire
from loop_core.wire.body import compact
from loop_core.wire.serving import Refused


def kind_of_error(api: str, status: int) -> str:
    """The type of an error, as this format's server names it; empty where it names none."""
    return wire(api).serving.errors.get(status, "")


def error_body(api: str, status: int, message: str, code: str | None = None, param: str | None = None) -> bytes:
    """An error as this format's server tells of it."""
    said = Refused(status, message, kind_of_error(api, status), code, param)
    return compact(wire(api).serving.refused(said)).encode()
