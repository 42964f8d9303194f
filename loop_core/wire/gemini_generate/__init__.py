"""Gemini generateContent (Gemini API and Vertex AI): whole, as server-sent events, or as a streamed array."""

from __future__ import annotations

from loop_core.wire.format import VERSION, Format, Home
from loop_core.wire.gemini_generate.decode import Decoder
from loop_core.wire.gemini_generate.encode import encode
from loop_core.wire.gemini_generate.request import ASKING_LOSES, encode_request, path, read_request
from loop_core.wire.gemini_generate.table import (
    API,
    LOSES,
    PATHS,
    READS,
    STOP_REASONS,
    STREAM_READS,
    recognises,
    reduce_schema,
)

FORMAT = Format(
    id=API,
    decoder=Decoder,
    stop_reasons=STOP_REASONS,
    paths=PATHS,
    recognises=recognises,
    reads=READS,
    stream_reads=STREAM_READS,
    read_request=read_request,
    encode=encode,
    loses=LOSES,
    encode_request=encode_request,
    asking_loses=ASKING_LOSES,
    path=path,
    home=Home("https://generativelanguage.googleapis.com", "/v1beta", VERSION, "x-goog-api-key"),
    provider="gcp.gemini",
    word_paths=(("candidates", 0, "finishReason"), ("candidates", 0, "finish_reason")),
    reduced=reduce_schema,
    history="contents",
)
