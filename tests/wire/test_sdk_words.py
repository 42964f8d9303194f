"""Our tables against the SDKs that are installed (extra `sdks`): every word that they type is in a row of ours."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from loop_core.values import Stop
from loop_core.wire import wire
from loop_core.wire.failures import FATAL_WORDS, RETRYABLE_WORDS, classify, read_error
from loop_core.wire.gemini_generate.table import BLOCK_REASONS
from loop_core.wire.openai_responses.table import STOP_REASONS as RESPONSES


def literals(hint: Any) -> Iterator[str]:
    """The words of every `Literal` in a type."""
    if typing.get_origin(hint) is typing.Literal:
        yield from (word for word in typing.get_args(hint) if isinstance(word, str))
    else:
        for inner in typing.get_args(hint):
            yield from literals(inner)


def field(model: Any, name: str) -> set[str]:
    """The words that a field of a pydantic model may hold; none would mean that the field is no longer typed."""
    found = set(literals(model.model_fields[name].annotation))
    assert found, f"{model.__name__}.{name} types no words any more"
    return found


def lacks(words: Iterable[str], table: Iterable[str]) -> set[str]:
    return set(words) - set(table)


def missing(codes: Iterable[str]) -> set[str]:
    """Error codes that are in no table, so that nobody decided what they mean."""
    known = RETRYABLE_WORDS | FATAL_WORDS
    found = set()
    for code in codes:
        error = read_error({"error": {"code": code, "message": "x"}})
        assert error is not None
        if code.lower() not in known and classify(error)[0] is Stop.ERROR:
            found.add(code)
    return found


def test_a_word_that_no_table_has_would_be_found() -> None:
    assert list(literals(typing.Literal["a", "b"] | None)) == ["a", "b"]
    assert lacks(["stop", "tired"], wire("openai_chat").stop_reasons) == {"tired"}
    assert missing(["server_error", "bio_policy", "context_length_exceeded", "tired"]) == {"tired"}


def test_openai_chat() -> None:
    pytest.importorskip("openai")
    from openai.types.chat import chat_completion, chat_completion_chunk
    from openai.types.completion_choice import CompletionChoice

    for model in (chat_completion.Choice, chat_completion_chunk.Choice, CompletionChoice):
        assert not lacks(field(model, "finish_reason"), wire("openai_chat").stop_reasons)


def test_openai_responses() -> None:
    pytest.importorskip("openai")
    from openai.types.responses import ResponseError
    from openai.types.responses.response import IncompleteDetails
    from openai.types.responses.response_status import ResponseStatus

    statuses = set(literals(ResponseStatus))
    assert statuses
    assert not lacks(statuses, RESPONSES)
    assert not lacks((f"incomplete:{word}" for word in field(IncompleteDetails, "reason")), RESPONSES)
    assert not missing(field(ResponseError, "code"))


def test_openai_error_codes_of_a_session() -> None:
    pytest.importorskip("openai")
    error = pytest.importorskip("openai.types.beta.session_turn_error")
    assert not missing(field(error.SessionTurnError, "code"))


def test_anthropic() -> None:
    pytest.importorskip("anthropic")
    from anthropic.types import StopReason
    from anthropic.types.beta import BetaStopReason
    from anthropic.types.shared.error_type import ErrorType

    for words in (StopReason, BetaStopReason):
        assert set(literals(words))
        assert not lacks(literals(words), wire("anthropic_messages").stop_reasons)
    assert set(literals(ErrorType))
    assert not missing(literals(ErrorType))


def test_gemini() -> None:
    types = pytest.importorskip("google.genai.types")
    finishes, blocks = {word.value for word in types.FinishReason}, {word.value for word in types.BlockedReason}
    assert finishes
    assert blocks
    assert not lacks(finishes, wire("gemini_generate").stop_reasons)
    assert not lacks(blocks, BLOCK_REASONS)


def test_gemini_interactions() -> None:
    module = pytest.importorskip("google.genai._gaos.types.interactions.interaction")
    statuses = set(literals(module.InteractionStatus))
    assert statuses
    assert not lacks(statuses, wire("gemini_interactions").stop_reasons)


def test_bedrock() -> None:
    session = pytest.importorskip("botocore.session")
    model = session.Session().get_service_model("bedrock-runtime")
    words = model.shape_for("StopReason").enum
    assert words
    assert not lacks(words, wire("bedrock_converse").stop_reasons)
    events = model.shape_for("ConverseStreamOutput").members
    errors = {shape.name for name in ("Converse", "ConverseStream")
              for shape in model.operation_model(name).error_shapes}
    errors |= {name for name in events if name.endswith("Exception")}
    assert errors
    assert not missing(errors)


def test_ollama() -> None:
    """Its SDK types `done_reason` as any text: where it begins to name words, ours must have them."""
    types = pytest.importorskip("ollama")
    hint = types.ChatResponse.model_fields["done_reason"].annotation
    assert not lacks(literals(hint), wire("ollama_chat").stop_reasons)
