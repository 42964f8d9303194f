"""OpenAI Responses, and those who imitate it."""

from loop_core.wire.body import as_is as reduced
from loop_core.wire.openai_responses.asking import ASKING_LOSES, encode_request, path
from loop_core.wire.openai_responses.decode import Decoder
from loop_core.wire.openai_responses.deltas import deltas
from loop_core.wire.openai_responses.encode import encode
from loop_core.wire.openai_responses.request import read_request
from loop_core.wire.openai_responses.table import LOSES, PATHS, STOP_REASONS, recognises

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
