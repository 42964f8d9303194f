"""OpenAI Chat Completions and the servers that speak it."""

from loop_core.wire.body import as_is as reduced
from loop_core.wire.openai_chat.asking import ASKING_LOSES, encode_request, path
from loop_core.wire.openai_chat.decode import Decoder
from loop_core.wire.openai_chat.deltas import deltas
from loop_core.wire.openai_chat.encode import encode
from loop_core.wire.openai_chat.request import read_request
from loop_core.wire.openai_chat.table import LOSES, PATHS, STOP_REASONS, recognises

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
