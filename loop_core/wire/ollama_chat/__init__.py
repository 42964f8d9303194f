"""Ollama's own chat endpoint, `/api/chat`: newline-delimited JSON, or one JSON object."""

from __future__ import annotations

import re

from loop_core.wire.format import Format, Home
from loop_core.wire.ollama_chat.decode import API, LOSES, PATHS, READS, STOP_REASONS, STREAM_READS, Decoder, recognises
from loop_core.wire.ollama_chat.encode import encode
from loop_core.wire.ollama_chat.request import ASKING_LOSES, encode_request, read_request

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
    path=lambda request: "/chat",
    home=Home("http://127.0.0.1:11434", "/api", re.compile(r"/api$"), "authorization"),
    provider="ollama",
    word_paths=(("done_reason",),),
    stream_type="application/x-ndjson",
)
