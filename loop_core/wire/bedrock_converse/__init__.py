"""Bedrock Converse and ConverseStream: `POST /model/{id}/converse` and `/converse-stream`."""

from loop_core.wire.bedrock_converse.decode import Decoder
from loop_core.wire.bedrock_converse.deltas import deltas
from loop_core.wire.bedrock_converse.encode import encode
from loop_core.wire.bedrock_converse.request import read_request
from loop_core.wire.bedrock_converse.table import LOSES, PATHS, STOP_REASONS, recognises

__all__ = ["LOSES", "PATHS", "STOP_REASONS", "Decoder", "deltas", "encode", "read_request", "recognises"]
