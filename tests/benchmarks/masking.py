"""Masking beside everything else that explaining a recording does: the corpus explained with it and without it."""

from __future__ import annotations

from unittest import mock

from corpus import explain, recordings
from measure import Line, Report, Skip, best, milliseconds

from inspector.sessions import build, detection, redact

ROUNDS = 3
MOST = 1.2
"""Masking may cost a fifth of explaining."""


def report() -> Report:
    """The recorded corpus, explained with and without masking."""
    paths = recordings()
    if not paths:
        yield Skip("explaining with masking ÷ without", "no corpus; name its folder with LOOP_INSPECTOR_CORPUS")
        return

    def without() -> object:
        same = mock.patch.multiple(
            redact, spans=lambda data: [], body=lambda data, counts=None: data,
            text=lambda value, counts=None: value)
        clean = mock.patch.object(detection, "suspicious", return_value=False)
        with same, clean, mock.patch.object(build, "without_pieces", lambda body, *rest: body):
            return explain(paths)

    took = best({"masked": lambda: explain(paths), "open": without}, ROUNDS)
    yield Line(f"explaining {len(paths)} HAR files with masking ÷ without", took["masked"] / took["open"], most=MOST,
               note=milliseconds(took["masked"], took["open"]))
