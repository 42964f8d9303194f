"""The inputs of a live turn: a prompt, a file of messages or a request body, the key, and the tools.

A key is sent only to the server that it belongs to. Tools are declarations in a file, each with an optional `result`
for every call, or Python callables named by their module, which are run.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from inspector.config import files
from inspector.sessions import intake
from inspector.sessions.detection import VARIABLE
from loop_core.client.address import Server, expected_profile, loopback
from loop_core.client.mask import SHORTEST
from loop_core.errors import CallerError
from loop_core.turn.tools import ToolFunction, declare_function
from loop_core.values import Message, Request, Role, TextPart, Tool
from loop_core.wire import wire


def request_of(api: str, model: str, prompt: str | None, messages: Any | None, stream: bool) -> Request:
    """The first request of a turn; `messages` is the JSON of a file. Raises `CallerError` if there is no prompt, or the
    file holds no messages."""
    if prompt is not None:
        read = Request(api, (Message(Role.USER, (TextPart(prompt),)),))
    elif isinstance(messages, Mapping):
        read = wire(api).read_request(messages)
        if not any(message.parts for message in read.messages):
            raise CallerError(f"--messages: not a request body of {api}: expected one with {wire(api).history}")
    else:
        read = _history(api, messages)
    return replace(read, model=model, stream=stream)


def _history(api: str, messages: Any) -> Request:
    """A list of messages, in the API's own form or as chat messages."""
    if not isinstance(messages, list) or not messages:
        raise CallerError("--messages: expected a JSON list of messages, or a request body")
    # The API's own form is tried first; the form of chat messages is accepted for every API.
    own = wire(api).read_request({wire(api).history: messages})
    if own.messages and all(message.parts for message in own.messages):
        return own
    chat = wire("openai_chat").read_request({"messages": messages})
    if not chat.messages or not all(message.parts for message in chat.messages):
        raise CallerError(f"--messages: a message has no content, or a form that neither {api} nor a chat uses")
    return replace(chat, api=api)


def json_file(path: str, option: str) -> Any:
    """The parsed JSON of a file. Raises `CallerError` if it cannot be read, or is not JSON."""
    try:
        files.check_bounds(path)
        return json.loads(intake.file_bytes(path).decode("utf-8-sig"))
    except (OSError, intake.BoundError) as why:
        raise CallerError(f"{option} {path}: {getattr(why, 'strerror', None) or why}") from None
    except RecursionError:
        raise CallerError(f"{option} {path}: nested too deeply") from None
    except UnicodeDecodeError as why:
        raise CallerError(f"{option} {path}: byte {why.start}: expected UTF-8") from None
    except json.JSONDecodeError as why:
        raise CallerError(f"{option} {path}: line {why.lineno}, column {why.colno}: {why.msg}") from None
    except ValueError:
        raise CallerError(f"{option} {path}: a number has too many digits") from None


# -- Keys from the environment ---------------------------------------------------------------------------------------

ANY = "LOOP_INSPECTOR_API_KEY"
"""The environment variable with a key that may be sent to any server."""
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
"""Profile that the address shows -> the variables for its key, by the provider's SDK or documents, in order."""


def key_for(address: str, environment: Mapping[str, str], variable: str | None) -> str:
    """The key for a server, found by its address; empty if there is none. Raises `CallerError` if the named variable is
    not set."""
    name = variable_for(address, environment, variable)
    return "" if name is None else environment[name].strip()  # keys that are read from a file end with a newline


def variable_for(address: str, environment: Mapping[str, str], variable: str | None) -> str | None:
    """The environment variable of the key for a server; None if none is set. `address` is the name of the profile that
    was found by the host, because a name that the operator gave does not prove where the key would go. `variable` is
    one that the operator named. Raises `CallerError` if that variable is not set."""
    if variable is not None:
        if not environment.get(variable):
            raise CallerError(f"--key-env: {variable} is not set")
        return variable
    return next((name for name in key_variables(address) if environment.get(name)), None)


def key_variables(address: str) -> tuple[str, ...]:
    """The environment variables that may hold a server's key, in order."""
    return (ANY, *VARIABLES.get(address, ()))


def missing_key(server: Server, model: str | None) -> str:
    """The variable to set for the key that a provider's own address needs; empty if no key is missing."""
    if server.secrets or server.sign is not None:
        return ""
    owner = expected_profile(replace(server, profile=None), model)
    rule, name = owner.evidence[0].rule if owner.evidence else "", owner.profile.name
    if rule != "profile.host" and not (rule == "profile.url" and name in VARIABLES):
        return ""
    host = urlsplit(server.base or wire(server.api).home.base).hostname or ""
    if loopback(host):
        return ""
    return f"set {' or '.join(VARIABLES.get(name, (ANY,)))}: {host} needs a key"


_IN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@:]*:([^\s/?#@]+)@", re.IGNORECASE)


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of environment variables whose names suggest a key, and passwords in addresses (proxies, databases).
    """
    named = [value.strip() for name, value in environment.items() if VARIABLE.search(name)]
    passwords = [form for value in environment.values() for word in _IN_ADDRESS.findall(value)
                 for form in (word, unquote(word))]  # an error message may show it percent-encoded or not
    return tuple(dict.fromkeys([*(value for value in named if _is_secret(value)), *filter(_is_secret, passwords)]))


def _is_secret(value: str) -> bool:
    """Whether a value may be a secret: not a plain word, a number or the path of a file."""
    # Variables such as TOKENIZER_PATH or KEYBOARD match by name; masking their values would hide ordinary words.
    return len(value) >= SHORTEST and not value.isalpha() and not value.isdigit() and value[0] not in "/~."


# -- Tools -----------------------------------------------------------------------------------------------------------

DeclaredTools = tuple[tuple[Tool, ...], Mapping[str, ToolFunction]]


def tools_of(spec: str) -> DeclaredTools:
    """The declared tools, and the functions of those that can be run; `spec` is a file or MODULE:ATTR. Raises
    `CallerError` if there is no such file, module or attribute, or it holds no tools."""
    module, colon, name = spec.partition(":")
    # A file's name may contain a colon (`C:\tools.json`), so a file that exists comes first.
    if colon and not Path(spec).exists() and all(word.isidentifier() for word in module.split(".")):
        return _callables(spec, module, name)
    value = json_file(spec, "--tools")
    items = value.get("tools") if isinstance(value, Mapping) else value
    if not isinstance(items, list):
        raise CallerError(f"--tools {spec}: expected a JSON list of tools")
    found = [_declaration(spec, item) for item in _flatten(items)]
    return tuple(tool for tool, _ in found), {tool.name: run for tool, run in found if run is not None}


def _flatten(items: Iterable[Any]) -> Iterable[Any]:
    """The single declarations of Gemini's lists of functions."""
    for item in items:
        inner = item.get("functionDeclarations") if isinstance(item, Mapping) else None
        if isinstance(inner, list):
            yield from inner
        else:
            yield item


def _declaration(spec: str, item: Any) -> tuple[Tool, ToolFunction | None]:
    """A tool in any provider's form, or in the plain one: name, description, parameters."""
    inner = item
    if isinstance(item, Mapping):
        # OpenAI's Chat Completions wraps a tool in `function`, Bedrock's Converse in `toolSpec`.
        inner = next((item[key] for key in ("function", "toolSpec") if isinstance(item.get(key), Mapping)), item)
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str) or not name:
        raise CallerError(f"--tools {spec}: a tool without a name")
    # OpenAI, Anthropic, Bedrock, and Gemini's field for plain JSON Schema.
    schema = next((inner[key] for key in ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
                   if isinstance(inner.get(key), Mapping)), None)
    # Bedrock wraps a schema once more: `inputSchema.json`.
    if schema is not None and isinstance(schema.get("json"), Mapping):
        schema = schema["json"]
    described, result = inner.get("description"), item.get("result")
    tool = Tool(name, schema, described if isinstance(described, str) else "")
    return tool, None if result is None else lambda arguments: result


def _callables(spec: str, module: str, name: str) -> DeclaredTools:
    files.check_tools(spec)
    sys.path.insert(0, "")  # like `python -m`: modules of the current folder are found
    try:
        found = importlib.import_module(module)
    except ImportError as why:
        raise CallerError(f"--tools {spec}: {why}") from None
    finally:
        sys.path.remove("")
    value = getattr(found, name, None)
    named: dict[str, Any] = {}
    if isinstance(value, Mapping):
        named = {str(key): item for key, item in value.items()}
    elif callable(value):
        named = {_name(value): value}
    elif isinstance(value, (list, tuple)):
        named = {_name(item): item for item in value}
    if not named or not all(callable(item) for item in named.values()):
        raise CallerError(f"--tools {spec}: expected a callable, a list of them, or names and callables")
    try:
        declarations = {key: declare_function(item, key) for key, item in named.items()}
    except CallerError as why:
        raise CallerError(f"--tools {spec}: {why}") from None
    return tuple(tool for tool, _ in declarations.values()), {key: run for key, (_, run) in declarations.items()}


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", "tool"))
