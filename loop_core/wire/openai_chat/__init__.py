"""OpenAI Chat Completions and the servers that speak it."""

from __future__ import annotations

from loop_core.wire.format import ANY_PATH, Format, Home, Prefill
from loop_core.wire.openai_chat.decode import Decoder
from loop_core.wire.openai_chat.encode import encode
from loop_core.wire.openai_chat.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.openai_chat.table import API, LOSES, PATHS, READS, STOP_REASONS, STREAM_READS, recognises

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
    path=lambda request: "/chat/completions",
    home=Home("https://api.openai.com", "/v1", ANY_PATH, "authorization"),
    provider="openai",
    word_paths=(("choices", 0, "finish_reason"),),
    prefills=frozenset(Prefill) - {Prefill.NONE},
    body_marks=True,
    rules={"openai_chat.usage_contradiction": ("usage.reasoning_tokens",)},
)
