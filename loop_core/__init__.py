"""The continuation engine: reads any provider's bytes and decides, deterministically, what an agent loop does next.

The names below are what an embedding agent needs. They are looked up when first used, so that reading one response does
not pay for the machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loop_core.wire import decode, decoder

if TYPE_CHECKING:
    from loop_core.classify import Judged as Judged
    from loop_core.classify import judge as judge
    from loop_core.gate import Verdict as Verdict
    from loop_core.gate import admit_all as admit_all
    from loop_core.limits import Limits as Limits
    from loop_core.loop import Plan as Plan
    from loop_core.loop import arun as arun
    from loop_core.loop import run as run
    from loop_core.machine import begin as begin
    from loop_core.machine import step as step
    from loop_core.policy import Policy as Policy
    from loop_core.presets import named as policy
    from loop_core.seam import join as join
    from loop_core.tools import Toolbox as Toolbox
    from loop_core.trace import Trace as Trace

_HOMES = {
    "Judged": ("classify", "Judged"),
    "judge": ("classify", "judge"),
    "Verdict": ("gate", "Verdict"),
    "admit_all": ("gate", "admit_all"),
    "Limits": ("limits", "Limits"),
    "Plan": ("loop", "Plan"),
    "arun": ("loop", "arun"),
    "run": ("loop", "run"),
    "begin": ("machine", "begin"),
    "step": ("machine", "step"),
    "Policy": ("policy", "Policy"),
    "policy": ("presets", "named"),
    "join": ("seam", "join"),
    "Toolbox": ("tools", "Toolbox"),
    "Trace": ("trace", "Trace"),
}

__all__ = [
    "Judged", "Limits", "Plan", "Policy", "Toolbox", "Trace", "Verdict", "admit_all", "arun", "begin", "decode",
    "decoder", "join", "judge", "policy", "run", "step",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _HOMES[name]
    return getattr(import_module(f"{__name__}.{module}"), own)
