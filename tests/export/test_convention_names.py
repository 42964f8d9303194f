"""The names that we borrow are those of OpenTelemetry's semantic conventions, as its own package has them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from inspector.export import conventions
from loop_core.wire import FORMATS, wire
from loop_core.wire.profiles import PROFILES
from tests.scenes.rows import each_row

semconv = pytest.importorskip("opentelemetry.semconv", reason="opentelemetry-semantic-conventions is not installed")


def texts(*modules: str) -> set[str]:
    """All values that these modules of the conventions name."""
    found: set[str] = set()
    for module in modules:
        held = vars(__import__(f"opentelemetry.semconv.{module}", fromlist=["x"]))
        found |= {value for value in held.values() if isinstance(value, str)}
    return found


def words(name: str) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the conventions moved to a repository of their own
        from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    values: Any = getattr(gen_ai_attributes, name)
    return {each.value for each in values}


BORROWED = {name: value for name, value in vars(conventions).items()
            if name.isupper() and isinstance(value, str) and not value.startswith(conventions.OURS)}


@each_row("name", BORROWED)
def test_an_attribute_or_metric_that_is_not_ours_is_the_conventions_own(name: str) -> None:
    known = texts("_incubating.attributes.gen_ai_attributes", "_incubating.metrics.gen_ai_metrics",
                  "attributes.server_attributes", "attributes.error_attributes", "attributes.http_attributes")
    assert BORROWED[name] in known


def test_everything_that_is_borrowed_was_looked_at() -> None:
    assert len(BORROWED) > 25
    assert {conventions.INPUT_MESSAGES, conventions.OUTPUT_MESSAGES, conventions.TOOL_RESULT} <= {*BORROWED.values()}


def test_operations_are_words_of_the_conventions() -> None:
    assert set(conventions.Operation) <= words("GenAiOperationNameValues")


def test_providers_are_well_known_and_their_profiles_exist() -> None:
    assert set(conventions.PROVIDERS) <= set(PROFILES)
    assert set(conventions.PROVIDERS.values()) <= words("GenAiProviderNameValues")
    assert {wire(api).provider for api in FORMATS} - {"ollama"} <= words("GenAiProviderNameValues")


@each_row(("profile", "api", "provider"), [
    ("openai", "openai_chat", "openai"),
    ("chatgpt_codex", "openai_responses", "openai"),
    ("anthropic", "anthropic_messages", "anthropic"),
    ("gemini", "openai_chat", "gcp.gemini"),
    ("vertex", "gemini_generate", "gcp.vertex_ai"),
    ("azure_openai", "openai_responses", "azure.ai.openai"),
    ("azure_foundry", "openai_chat", "azure.ai.inference"),
    ("bedrock", "anthropic_messages", "aws.bedrock"),
    ("cohere", "openai_chat", "cohere"),
    ("deepseek", "openai_chat", "deepseek"),
    ("groq", "openai_chat", "groq"),
    ("mistral", "openai_chat", "mistral_ai"),
    ("xai", "openai_chat", "x_ai"),
    ("vllm", "openai_chat", "vllm"),
    ("generic", "openai_chat", "openai"),
    ("generic", "openai_responses", "openai"),
    ("generic", "anthropic_messages", "anthropic"),
    ("generic", "gemini_generate", "gcp.gemini"),
    ("generic", "bedrock_converse", "aws.bedrock"),
    ("generic", "ollama_chat", "ollama"),
])
def test_who_a_provider_is(profile: str, api: str, provider: str) -> None:
    assert conventions.provider(profile, api) == provider


def test_units_and_buckets_of_their_metrics() -> None:
    """The conventions' advice: powers of four from 1 to 67,108,864, and seconds doubled from 0.01 to 81.92."""
    from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

    made: dict[str, str] = {}

    class Meter:
        def create_histogram(self, name: str, description: str, unit: str) -> None:
            made[name] = unit

    for create in ("token_usage", "operation_duration", "operation_time_to_first_chunk"):
        getattr(gen_ai_metrics, f"create_gen_ai_client_{create}")(Meter())
    assert made == {name: conventions.INSTRUMENTS[name].unit for name in made}
    assert conventions.INSTRUMENTS[conventions.TOKEN_USAGE].bounds == (
        1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
    assert conventions.INSTRUMENTS[conventions.DURATION].bounds == (
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
