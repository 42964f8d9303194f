"""The transcripts that agents left on this machine, as rows of the picker: what is known of a file before and after it
was read.

Reads files, read-only, one at a time and in a thread of the picker's; a file that cannot be read says so in its row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime

from inspector.report.facts import View
from inspector.report.lines.spans import Role
from inspector.report.lines.steps import role_of
from inspector.sessions.agents import Transcript, transcripts
from inspector.tui.opening import Reading, load
from inspector.tui.widgets.choices import Choice
from loop_core.errors import LoopError
from loop_core.frozen import replace

READABLE = 16_000_000
"""Bytes; a larger file is not read for its verdict alone."""
HEADING = "Transcripts of your agents, newest first"


def rows(environment: Mapping[str, str]) -> list[Choice]:
    """A row for each of the newest transcripts, from its name and times alone."""
    return [_row(each) for each in transcripts(environment)]


def _row(each: Transcript) -> Choice:
    when = datetime.fromtimestamp(each.modified).strftime("%Y-%m-%d %H:%M")
    about = f"{each.agent}, {each.size:,} bytes, written {when}"
    large = each.size > READABLE
    return Choice(
        f"{when[5:]}  {each.agent:<11}  {_name(each.path)}", each.path, provenance=about,
        verdict="large: open it to see" if large else "…", role=Role.DIM, unread=not large,
    )


def _name(path: str) -> str:
    """The project's folder, whose end says more than its beginning."""
    folder = os.path.basename(os.path.dirname(path))
    return folder.strip("-")[-28:] if folder != "sessions" else os.path.basename(path)[:28]


def judged(choice: Choice) -> Choice:
    """The same row with what reading its file tells: the worst verdict, or why there is none."""
    try:
        opened = load((choice.path,), Reading())
    except LoopError as why:
        return replace(choice, verdict=f"cannot be read: {why}", role=Role.ERROR, unread=False)
    view = opened.original.view
    worst = view.worst
    if worst is None:
        why_not = next(iter(opened.errors), "no answer of a model in it")
        return replace(choice, verdict=why_not, role=Role.ERROR if opened.errors else Role.DIM, unread=False)
    seen = worst.verdict
    return replace(
        choice, verdict=f"{seen.glyph} {seen.word}", role=role_of(seen), story=_about(view),
        end_state=view.headline(), unread=False,
    )


def _about(view: View) -> str:
    """The session's own title, or what its user asked first."""
    title = next((given.about.title for given in view.inputs if given.about and given.about.title), "")
    asked = next((turn.run.record.user_text for turn in view.turns if turn.run.record.user_text), "")
    return title or asked[:400]
