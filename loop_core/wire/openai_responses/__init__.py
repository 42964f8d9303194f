"""OpenAI Responses, and those who imitate it."""

from loop_core.wire.openai_responses.decode import Decoder
from loop_core.wire.openai_responses.deltas import deltas
from loop_core.wire.openai_responses.encode import encode
from loop_core.wire.openai_responses.request import read_request
from loop_core.wire.openai_responses.table import LOSES, PATHS, STOP_REASONS, recognises

__all__ = ["LOSES", "PATHS", "STOP_REASONS", "Decoder", "deltas", "encode", "read_request", "recognises"]
