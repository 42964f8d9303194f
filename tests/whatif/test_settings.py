"""The settings beside the limits: read, written, named, and in force."""

from __future__ import annotations

import pytest

from inspector.config.settings import CHOICES, Settings, command, name_of, settings_of
from inspector.whatif.tree import branch
from loop_core.errors import CallerError
from loop_core.turn.continuation import Method, SeamDecision, SeamRule
from tests.scenes.recordings import PARTS, chat, cut_text, pair_of, show, user
from tests.scenes.rows import each_row


@each_row("name", [name for name, choice in CHOICES.items() if choice.words])
def test_every_word_is_read_and_written_back(name):
    for word in CHOICES[name].words:
        made = settings_of({name: word}, Settings())
        assert CHOICES[name].write(getattr(made, name)) == word
        assert f"--set {name}={word}" in command(["x.har"], made)
        assert name_of(Settings(), made) == f"{name}={word}"
        assert settings_of({name: "default"}, made) == Settings()
    with pytest.raises(CallerError, match=f"{name}: 'sideways' is not one of"):
        settings_of({name: "sideways"}, Settings())


def test_silence_that_was_asked_for_is_a_good_end():
    empty = pair_of([user("answer nothing")], chat(""))
    assert show(empty).worst.verdict.word == "EMPTY ANSWER"
    silent = show(empty, settings=settings_of({"allow_silence": "yes"}, Settings())).worst
    assert (silent.verdict.word, silent.terminal) == ("COMPLETE", "completed")
    assert show(empty, settings=settings_of({"allow_silence": "no"}, Settings())).worst.verdict.word == "EMPTY ANSWER"


def test_a_policy_is_a_setting_like_another():
    made = settings_of({"policy": "pi-presence"}, Settings())
    assert made.policy.name == "pi-presence"
    assert command(["x.har"], made) == "inspector replay x.har --policy pi-presence"


def test_another_seam_rule_joins_the_same_segments_otherwise():
    repeated = "and so the third region was left alone, "
    found = show(*cut_text(f"First part {repeated}", f"{repeated}which ended it."))
    assert found.turns[0].joined_text.text == f"First part {repeated}which ended it."
    made = branch(found, settings_of({"seam": "concat"}, Settings()))
    assert made.view.turns[0].joined_text.text == f"First part {repeated}{repeated}which ended it."
    assert [seam.decision for seam in made.view.turns[0].joined_text.seams] == [SeamDecision.AS_SENT]
    assert Settings(seam=SeamRule.CONCAT).belief.seam is SeamRule.CONCAT


def test_another_method_asks_otherwise_and_is_a_difference():
    found = show(*cut_text(*PARTS))
    made = branch(found, Settings(method=Method.HINT))
    sent = made.view.steps[made.difference].turn.last_send
    assert sent.method is Method.HINT
    assert made.view.turns[0].terminal == found.turns[0].terminal
