"""Cohere's chat: `POST /v2/chat`, and the responses of `/v1/chat`."""

from __future__ import annotations

from loop_core.wire.cohere_chat.decode import API, LOSES, PATHS, READS, STOP_REASONS, STREAM_READS, Decoder, recognises
from loop_core.wire.cohere_chat.encode import encode
from loop_core.wire.cohere_chat.request import ASKING_LOSES, encode_request, read_request
from loop_core.wire.format import VERSION, Format, Home

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
    home=Home("https://api.cohere.com", "/v2", VERSION, "authorization"),
    provider="cohere",
)
