"""Anthropic Messages: `POST /v1/messages`, also as hosted on Vertex."""

from loop_core.wire.anthropic_messages.decode import Decoder
from loop_core.wire.anthropic_messages.deltas import deltas
from loop_core.wire.anthropic_messages.encode import encode
from loop_core.wire.anthropic_messages.request import read_request
from loop_core.wire.anthropic_messages.table import LOSES, PATHS, STOP_REASONS, recognises

__all__ = ["LOSES", "PATHS", "STOP_REASONS", "Decoder", "deltas", "encode", "read_request", "recognises"]
