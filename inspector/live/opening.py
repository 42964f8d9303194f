"""What a live turn begins with: a prompt, a file of messages, or a whole request body of the API.

Further down: keys from the environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from inspector.config import bounds
from inspector.sessions.detection import VARIABLE
from loop_core.client.mask import SHORTEST
from loop_core.errors import CallerError
from loop_core.values import Message, Request, Role, TextPart
from loop_core.wire import wire


def request_of(api: str, model: str, prompt: str | None, messages: Any | None, stream: bool) -> Request:
    """The first request of a turn; `messages` is the JSON of a file.

    Raises:
        CallerError: there is nothing to ask, or the file holds no messages.
    """
    if prompt is not None:
        read = Request(api, (Message(Role.USER, (TextPart(prompt),)),))
    elif isinstance(messages, Mapping):
        read = wire(api).read_request(messages)
        if not any(message.parts for message in read.messages):
            raise CallerError(f"--messages: no request body of {api}: expected one with {wire(api).history}")
    else:
        read = _history(api, messages)
    return replace(read, model=model, stream=stream)


def _history(api: str, messages: Any) -> Request:
    """A list of messages, in the API's own form or as chat messages."""
    if not isinstance(messages, list) or not messages:
        raise CallerError("--messages: expected a JSON list of messages, or a request body")
    own = wire(api).read_request({wire(api).history: messages})
    if own.messages and all(message.parts for message in own.messages):
        return own
    chat = wire("openai_chat").read_request({"messages": messages})
    if not chat.messages or not all(message.parts for message in chat.messages):
        raise CallerError(f"--messages: a message without content, or in no form that {api} or a chat has")
    return replace(chat, api=api)


def json_file(path: str, option: str) -> Any:
    """The JSON of a file.

    Raises:
        CallerError: it cannot be read, or is no JSON.
    """
    try:
        bounds.check(path)
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as why:
        raise CallerError(f"{option} {path}: {why.strerror or why}") from None
    except UnicodeDecodeError as why:
        raise CallerError(f"{option} {path}: byte {why.start}: expected UTF-8") from None
    except json.JSONDecodeError as why:
        raise CallerError(f"{option} {path}: line {why.lineno}, column {why.colno}: {why.msg}") from None


# -- Keys from the environment ---------------------------------------------------------------------------------------
# Each goes to the server that it belongs to, and to no other; tools show none.

ANY = "LOOP_INSPECTOR_API_KEY"
"""Goes to whatever server is asked."""
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "ollama": ("OLLAMA_API_KEY",),
    "azure_openai": ("AZURE_OPENAI_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "hf_router": ("HF_TOKEN",),
}
"""Who is at the address -> the variables that its own SDK reads, first one first."""


def key_for(address: str, environment: Mapping[str, str], variable: str | None = None) -> str:
    """The key for the server that the address alone shows; empty where there is none.

    Raises:
        CallerError: the named variable is not set.
    """
    name = variable_for(address, environment, variable)
    return "" if name is None else environment[name].strip()


def variable_for(address: str, environment: Mapping[str, str], variable: str | None = None) -> str | None:
    """The variable that holds the key for the server that the address alone shows; None where none does.

    `address` is a profile's name that was found by the host: a name that the operator gave proves nothing about where
    the key would go. `variable` is one that the operator named.

    Raises:
        CallerError: the named variable is not set.
    """
    if variable is not None:
        if not environment.get(variable):
            raise CallerError(f"--key-env: {variable} is not set")
        return variable
    return next((name for name in wanted(address) if environment.get(name)), None)


def wanted(address: str) -> tuple[str, ...]:
    """The variables that are looked at for a server, first one first."""
    return (ANY, *VARIABLES.get(address, ()))


_IN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@:]*:([^\s/?#@]+)@", re.IGNORECASE)


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values that look like keys by their variables' names, and the passwords of addresses (proxies, databases)."""
    named = [value.strip() for name, value in environment.items() if VARIABLE.search(name)]
    passwords = [form for value in environment.values() for word in _IN_ADDRESS.findall(value)
                 for form in (word, unquote(word))]
    return tuple(dict.fromkeys([*(value for value in named if _secret(value)), *filter(_secret, passwords)]))


def _secret(value: str) -> bool:
    """Whether a value is more than a word, a number or the name of a file."""
    return len(value) >= SHORTEST and not value.isalpha() and not value.isdigit() and value[0] not in "/~."
