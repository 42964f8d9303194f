"""Gemini generateContent: the Gemini API and Vertex AI, whole, as server-sent events or as a streamed array."""

from __future__ import annotations

from loop_core.wire.gemini_generate.asking import ASKING_LOSES, encode_request, path
from loop_core.wire.gemini_generate.decode import Decoder
from loop_core.wire.gemini_generate.deltas import deltas
from loop_core.wire.gemini_generate.encode import encode
from loop_core.wire.gemini_generate.request import read_request
from loop_core.wire.gemini_generate.schemas import problems, reduced
from loop_core.wire.gemini_generate.table import BLOCK_REASONS, LOSES, NUMBERS, PATHS, STOP_REASONS, recognises

__all__ = [
    "ASKING_LOSES",
    "BLOCK_REASONS",
    "LOSES",
    "NUMBERS",
    "PATHS",
    "STOP_REASONS",
    "Decoder",
    "deltas",
    "encode",
    "encode_request",
    "path",
    "problems",
    "read_request",
    "recognises",
    "reduced",
]
