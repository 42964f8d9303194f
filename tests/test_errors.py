"""The errors of the engine: what they say, here and in another process."""

from __future__ import annotations

import copy
import pickle

import pytest

from loop_core.errors import CallerError, DecodeError, EncodeError, LoopError
from loop_core.turn.tools import ToolError


@pytest.mark.parametrize(("error", "words"), [
    (DecodeError("no JSON", api="ollama_chat", offset=7, expected="`{`"), "ollama_chat: byte 7: no JSON; expected `{`"),
    (DecodeError("no JSON", offset=7), "byte 7: no JSON"),
    (EncodeError("no ids", api="ollama_chat", what="call.id"), "ollama_chat: no ids"),
    (EncodeError("no ids"), "no ids"),
    (CallerError("no such API"), "no such API"),
    (ToolError("no such team"), "no such team"),
])
def test_an_error_says_the_same_in_another_process(error: LoopError, words: str) -> None:
    for each in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(each) is type(error)
        assert str(each) == words
        assert vars(each) == vars(error)
