"""Keys from the environment: each goes to the server that it belongs to, and to no other; tools show none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from inspector.sessions.detection import VARIABLE
from loop_core.errors import CallerError
from loop_core.mask import SHORTEST

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
