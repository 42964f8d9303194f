"""Bedrock Converse and ConverseStream: `POST /model/{id}/converse` and `/converse-stream`."""

from __future__ import annotations

from loop_core.wire.bedrock_converse.decode import Decoder
from loop_core.wire.bedrock_converse.encode import encode
from loop_core.wire.bedrock_converse.request import ASKING_LOSES, encode_request, path, read_request
from loop_core.wire.bedrock_converse.table import API, LOSES, PATHS, READS, STOP_REASONS, STREAM_READS, recognises
from loop_core.wire.eventstream import CONTENT_TYPE
from loop_core.wire.format import ANY_PATH, Format, Home, Prefill

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
    home=Home("https://bedrock-runtime.us-east-1.amazonaws.com", "", ANY_PATH, "authorization"),
    provider="aws.bedrock",
    word_paths=(("stopReason",),),
    stream_type=CONTENT_TYPE,
    prefills=frozenset({Prefill.PLAIN}),
    cached_apart=True,
    region="us-east-1",
)
