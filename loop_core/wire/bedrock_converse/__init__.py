"""Bedrock Converse and ConverseStream: `POST /model/{id}/converse` and `/converse-stream`."""

from loop_core.wire.bedrock_converse.asking import ASKING_LOSES, encode_request, path
from loop_core.wire.bedrock_converse.decode import Decoder
from loop_core.wire.bedrock_converse.deltas import deltas
from loop_core.wire.bedrock_converse.encode import encode
from loop_core.wire.bedrock_converse.request import read_request
from loop_core.wire.bedrock_converse.table import LOSES, PATHS, STOP_REASONS, recognises
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
