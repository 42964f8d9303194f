"""Gemini Interactions: `POST /v1beta/interactions`, whole or as server-sent events, kept by the server or not."""

from __future__ import annotations

from loop_core.wire.format import VERSION, Format, Home
from loop_core.wire.gemini_interactions.decode import Decoder
from loop_core.wire.gemini_interactions.encode import encode
from loop_core.wire.gemini_interactions.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.gemini_interactions.table import (
    API,
    LOSES,
    PATHS,
    READS,
    STOP_REASONS,
    STREAM_READS,
    is_chained,
    recognises,
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
    path=lambda request: "/interactions",
    home=Home("https://generativelanguage.googleapis.com", "/v1beta", VERSION, "x-goog-api-key"),
    provider="gcp.gemini",
    history="input",
    chained=is_chained,
)
