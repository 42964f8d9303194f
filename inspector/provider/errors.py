"""Errors in the shape of each format's own server: kinds, codes and the member that is at fault.

Owns no rule about what is an error; whoever finds one raises `RequestError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from loop_core.errors import CallerError
from loop_core.wire.jsontext import compact
from loop_core.wire.servers import CHAT, CONVERSE, GEMINI, MESSAGES, OLLAMA, RESPONSES

KINDS: Mapping[int, Mapping[str, str]] = {
    400: {MESSAGES: "invalid_request_error", GEMINI: "INVALID_ARGUMENT", CONVERSE: "ValidationException"},
    404: {MESSAGES: "not_found_error", GEMINI: "NOT_FOUND", CONVERSE: "ResourceNotFoundException"},
    429: {MESSAGES: "rate_limit_error", GEMINI: "RESOURCE_EXHAUSTED", CONVERSE: "ThrottlingException"},
    500: {MESSAGES: "api_error", GEMINI: "INTERNAL", CONVERSE: "InternalServerException"},
    503: {MESSAGES: "api_error", GEMINI: "UNAVAILABLE", CONVERSE: "ServiceUnavailableException"},
    529: {MESSAGES: "overloaded_error", GEMINI: "UNAVAILABLE", CONVERSE: "ServiceUnavailableException"},
}
"""HTTP status -> the error's type in formats that have one; elsewhere it is `OPENAI`'s, or there is none."""
OPENAI: Mapping[int, str] = {
    400: "invalid_request_error", 404: "invalid_request_error", 429: "rate_limit_error", 500: "server_error",
    503: "server_error", 529: "server_error",
}
"""OpenAI says `invalid_request_error` of a model and of a path that are not there too."""


class RequestError(CallerError):
    """A request that is refused: the words, and what a format that has a place for it says beside them."""

    def __init__(
        self, message: str, status: int = 400, *, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


class _Said(NamedTuple):
    status: int
    message: str
    kind: str
    code: str | None
    param: str | None


def _openai(said: _Said) -> dict[str, Any]:
    return {"error": {"message": said.message, "type": said.kind, "param": said.param, "code": said.code}}


def _messages(said: _Said) -> dict[str, Any]:
    return {"type": "error", "error": {"type": said.kind, "message": said.message}}


def _gemini(said: _Said) -> dict[str, Any]:
    error: dict[str, Any] = {"code": said.status, "message": said.message, "status": said.kind}
    if said.param is not None:
        violation = {"field": said.param, "description": said.message}
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
    return {"error": error}


SHAPES: Mapping[str, Callable[[_Said], dict[str, Any]]] = {
    CHAT: _openai,
    RESPONSES: _openai,
    MESSAGES: _messages,
    GEMINI: _gemini,
    CONVERSE: lambda said: {"message": said.message, "__type": said.kind},
    OLLAMA: lambda said: {"error": said.message},
}
"""Format -> the body of an error."""


def kind_of_error(api: str, status: int) -> str:
    """The type of an error, as this format's server names it."""
    return KINDS[status].get(api, OPENAI[status])


def error_body(api: str, status: int, message: str, code: str | None = None, param: str | None = None) -> bytes:
    """An error as this format's server tells of it."""
    said = _Said(status, message, kind_of_error(api, status), code, param)
    return compact(SHAPES[api](said)).encode()
