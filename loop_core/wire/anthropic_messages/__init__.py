"""Anthropic Messages: `POST /v1/messages`, also as hosted on Vertex."""

from loop_core.wire.anthropic_messages.asking import ASKING_LOSES, encode_request, path
from loop_core.wire.anthropic_messages.decode import Decoder
from loop_core.wire.anthropic_messages.deltas import deltas
from loop_core.wire.anthropic_messages.encode import encode
from loop_core.wire.anthropic_messages.request import read_request
from loop_core.wire.anthropic_messages.table import LOSES, PATHS, STOP_REASONS, recognises
from loop_core.wire.body import as_is as reduced

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
