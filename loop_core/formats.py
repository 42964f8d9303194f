"""The registry of wire formats, with one row for each format.

A row names the format's package (a single module if the format is small) and holds what must be known about a format
before its package is loaded; everything else is in its `Format` (`loop_core.wire.format`). This module holds only data,
because the state machine reads it and must not depend on a format.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
from collections.abc import Mapping
from typing import NamedTuple


class FormatEntry(NamedTuple):
    """One row of the registry: the package of a wire format, and how its traffic is recognised."""

    package: str
    path_pieces: tuple[str, ...] = ()
    """Pieces of the URL paths that serve this format. The `paths` of formats with a matching piece are tried first."""
    body_pieces: tuple[bytes, ...] = ()
    """Bytes that occur in answers of the format. A body without such bytes of any format is not recognised."""
    servers: tuple[str, ...] = ()
    """Names of further profiles that speak the format, besides the profiles whose own rows list it."""
    late_system: bool = False
    """Whether a history of the format may end with a system message, whatever the model."""
    forces_tool: bool = True
    """Whether a request can force a call of one tool."""
    least_cap: int = 1
    """The smallest output cap that the format permits, in tokens."""
    names_stop_strings: bool = False
    """Whether the format's stop words say whether a stop string was hit."""
    whole_calls: bool = False
    """Whether servers send a call only if it is whole, so that arguments that come parsed were not cut."""
    common_path: bool = False
    """Whether other services use the path too. The body then decides the format, if it is recognised."""


_COMPATIBLE = (
    "openai", "azure_openai", "vllm", "llama_cpp", "together", "ollama", "openrouter", "mistral", "deepseek",
    "fireworks", "hf_router",
)
"""The servers of chat completions that also take legacy completions."""
FORMATS: Mapping[str, FormatEntry] = {
    "openai_chat": FormatEntry("loop_core.wire.openai_chat", ("/chat/completions",), (b'"choices"',), late_system=True),
    "openai_responses": FormatEntry(
        "loop_core.wire.openai_responses", ("/responses",), (b'"output"', b'"response.', b'"response":'),
        late_system=True, least_cap=16),
    "anthropic_messages": FormatEntry(
        "loop_core.wire.anthropic_messages", ("/messages",), (b'"stop_reason"', b'"content_block', b'"message_start"'),
        names_stop_strings=True),
    "gemini_generate": FormatEntry(
        "loop_core.wire.gemini_generate", ("GenerateContent", ":generateContent"),
        (b'"candidates"', b'"promptFeedback"', b'"usageMetadata"'), whole_calls=True),
    "bedrock_converse": FormatEntry(
        "loop_core.wire.bedrock_converse", ("/converse",), (b'"stopReason"', b":event-type"), names_stop_strings=True),
    "ollama_chat": FormatEntry("loop_core.wire.ollama_chat", ("/api/chat",), (b'"done"',), late_system=True,
                               forces_tool=False, whole_calls=True),
    "gemini_interactions": FormatEntry(
        "loop_core.wire.gemini_interactions", ("/interactions",), (b'"interaction', b'"event_type"', b'"steps"'),
        servers=("gemini",)),
    "openai_completions": FormatEntry(
        "loop_core.wire.openai_completions", ("/completions",), (b'"choices"',), servers=_COMPATIBLE),
    "ollama_generate": FormatEntry(
        "loop_core.wire.ollama_generate", ("/api/generate",), (b'"done"',), servers=("ollama",)),
    "bedrock_invoke": FormatEntry(
        "loop_core.wire.bedrock_invoke", ("/invoke",), (b"\x0b:event-type\x07\x00\x05chunk",), servers=("bedrock",)),
    "cohere_chat": FormatEntry(
        "loop_core.wire.cohere_chat", ("/chat",), (b'"finish_reason"', b'"event_type"', b'"message-start"'),
        servers=("cohere",), names_stop_strings=True, common_path=True),
    "anthropic_complete": FormatEntry(
        "loop_core.wire.anthropic_complete", ("/complete",), (b'"completion"',), servers=("anthropic",)),
}
UNKNOWN_FORMAT = FormatEntry("")


def format_entry(api: str) -> FormatEntry:
    """The row of a format; an unknown format gets a row of default values."""
    return FORMATS.get(api, UNKNOWN_FORMAT)
