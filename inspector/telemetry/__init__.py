"""Telemetry: turns as OpenTelemetry's spans and metrics, by its conventions for generative AI.

`spans` and `points` are pure mappings from a session as it is viewed; `otlp` writes them as OTLP/JSON without any
package, `sdk` hands them to OpenTelemetry's SDK, and `seen` makes a session of a live run of somebody's own loop.
Message contents are left out unless they are asked for, credentials always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from inspector.config.settings import Settings
from inspector.live.told import Kept, replay_of
from inspector.report.facts import View, view
from inspector.telemetry.metrics import points
from inspector.telemetry.spans import spans
from loop_core.errors import CallerError
from loop_core.turn.trace import Trace

if TYPE_CHECKING:
    from inspector.telemetry.sdk import Sink

__all__ = ["Kept", "points", "seen", "sink", "spans"]


def seen(kept: Kept, trace: Trace, name: str = "live") -> View:
    """One turn of a loop of one's own, as every report sees it: what its observer kept, and its steps."""
    return view(replay_of(kept, trace.steps, Settings(), name))


def sink(environment: Mapping[str, str]) -> Sink:
    """Where telemetry goes, as the standard variables say.

    Raises:
        CallerError: the extra is not installed, or an exporter cannot be made.
    """
    try:
        from inspector.telemetry.sdk import Sink
    except ModuleNotFoundError as why:
        if (why.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise CallerError("--otel needs the extra otel: pip install 'loop-inspector[otel]'") from None
    return Sink(environment)
