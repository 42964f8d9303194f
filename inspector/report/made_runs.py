"""The statements that an export must make about a run: its settings, the sources of its answers, and their files.

They keep a what-if, or a turn that was sent again, from being taken for what was recorded. The original run of a
recording needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.config.settings import Settings, name_of
from inspector.report.facts import ResponseFacts, TurnFacts, View
from inspector.report.run_answers import answers_of
from loop_core.turn.trace import Fidelity


def fidelity_of(view: View, turn: TurnFacts) -> Fidelity:
    """How far the answers that decided a turn can be trusted."""
    return view.steps[turn.run.decided].fidelity


def used_responses(view: View, turn: TurnFacts) -> list[ResponseFacts]:
    """The responses of a turn that are in a file, without those that a live run or a stand-in replaced."""
    return [view.responses[link.index] for link in turn.run.record.links]


def cut_again(view: View, turn: TurnFacts) -> list[ResponseFacts]:
    """The simulated answers of a turn, which are in no file: recorded output that was cut at another budget."""
    if not any(each.settings.simulate for each in view.replay.stretches):
        return []
    return [facts for _, facts in answers_of(view, turn.run.first, turn.run.end) if facts.recut is not None]


def settings_words(view: View) -> str:
    """The settings of a run that are not the defaults, with the steps from which they hold; empty if none is set."""
    before, words = Settings(), []
    for since, settings in view.replay.stretches:
        if settings != before and (name := name_of(before, settings)) != "unchanged":
            words.append(name + (f" from step {since + 1}" if since else ""))
        before = settings
    return "; ".join(words)


def branch_files(view: View) -> Iterator[tuple[str, str, int]]:
    """The files of answers that were requested again: path, who answered, and the number of responses."""
    asked = [facts for facts in view.responses if facts.live]
    for path in dict.fromkeys(facts.exchange.path for facts in asked):
        own = [facts for facts in asked if facts.exchange.path == path]
        who = "SIMULATED: answered by a stand-in" if own[0].simulated else "LIVE: asked again"
        yield path, who, len(own)
