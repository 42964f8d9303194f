"""What the recorded agent did after each answer, in words, by the place of its next request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inspector.replay import TurnRun
from inspector.replay.case import LIVE, REFUSED
from inspector.sessions.recording import Link, TurnPlace, TurnRecord
from loop_core.judge.gate import Verdict

NEVER = "never saw this answer: we asked for it afterwards"
"""The text for what the recorded agent did after an answer that was asked live."""
ENDS = "the recording ends"
"""The text where no later request of the agent was recorded."""
WENT_ON: Mapping[TurnPlace, str] = {
    TurnPlace.CONTINUATION: "asked to continue",
    TurnPlace.REPAIR: "asked for the call again",
    TurnPlace.TOOL_RESULT: "answered the calls",
    TurnPlace.RESUME: "resumed it",
    TurnPlace.NUDGE: "asked for an answer again",
    TurnPlace.RETRY: "sent the request again",
    TurnPlace.REQUEST: "sent a new message",
}
"""What the recorded agent did next, by the place of its next request; every place has a row."""


def parents_in(records: Iterable[TurnRecord]) -> set[int | None]:
    """The answers that a recorded request continued, also in turns that were sent live again."""
    return {link.parent for record in records for link in (*record.links, *record.remainder)}


def last_recorded(run: TurnRun) -> int:
    """The index of the last recorded exchange of a turn."""
    record = run.record
    # Answers that were asked live are left out: no recorded agent went on from them.
    recorded = [link for link in (*record.links, *record.remainder) if link.why != LIVE]
    return (recorded or record.links)[-1].index


def next_act(
    links: Sequence[Link], position: int, last: bool, verdicts: Sequence[Verdict], may_follow: Sequence[int] = ()
) -> str:
    """What the agent did after the answer at a position of its turn. With `last` no request certainly continued the
    turn; those in `may_follow` possibly did."""
    unclear = f"whether response {may_follow[0]} goes on from it is not known" if may_follow else ENDS
    went_on = unclear if last else "went on to a new turn"
    if position + 1 < len(links):
        place = links[position + 1].place
        went_on = WENT_ON[place] if verdicts or place is not TurnPlace.TOOL_RESULT else "sent results of tools"
    refused = sum(verdict.rule == REFUSED for verdict in verdicts)
    if not refused:
        return went_on
    return f"refused {'the call' if len(verdicts) == 1 else f'{refused} of {len(verdicts)} calls'}, and {went_on}"
