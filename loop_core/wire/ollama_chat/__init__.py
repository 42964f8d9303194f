"""Ollama's own chat endpoint, `/api/chat`: newline-delimited JSON, or one JSON object."""

from __future__ import annotations

from loop_core.wire.body import as_is as reduced
from loop_core.wire.ollama_chat.asking import ASKING_LOSES, encode_request, path
from loop_core.wire.ollama_chat.decode import Decoder
from loop_core.wire.ollama_chat.deltas import deltas
from loop_core.wire.ollama_chat.encode import encode
from loop_core.wire.ollama_chat.request import read_request
from loop_core.wire.ollama_chat.table import LOSES, PATHS, STOP_REASONS, recognises

__all__ = [
    "ASKING_LOSES",
    "LOSES",
    "PATHS",
    "STOP_REASONS",
    "Decoder",
    "deltas",
    "encode",
    "encode_request",
    "path",
    "read_request",
    "recognises",
    "reduced",
]
