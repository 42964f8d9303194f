"""The values by which `wire` describes a wire format and a server that speaks it.

Each format's package exports a `Format` as `FORMAT`. The rows of `servers` are values of `Profile`; `profiles` chooses
one of them.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from loop_core.values import ChatResponse, Request, Tool
from loop_core.wire.base import Decoder
from loop_core.wire.failures import StopRow
from loop_core.wire.reads import FactRow


class Prefill(StrEnum):
    """How a server can be asked to continue the text of a response."""

    NONE = "none"
    """It cannot, or this is unknown: a message asks for the rest."""
    PLAIN = "plain"
    """An assistant message at the end of the history."""
    PREFIX = "prefix"
    """The same with `prefix: true` on it."""
    PARTIAL = "partial"
    """The same with `partial: true` on it."""
    CONTINUE_FINAL_MESSAGE = "continue_final_message"
    """The same with `continue_final_message: true` and `add_generation_prompt: false` in the request."""


class BodyMark(NamedTuple):
    """A value of the body (or of the first event of a stream) that identifies a server."""

    path: tuple[str | int, ...]
    pattern: str = ""
    """Searched in the value's text (JSON unless it is a string); the default asks only that the key is there."""


def mark(*path: str | int, like: str = "") -> BodyMark:
    """A mark at this path whose text matches the pattern."""
    return BodyMark(path, like)


class Profile(NamedTuple):
    """What is known about a server, or a kind of server: how it is recognised, and how it differs from others."""

    name: str
    apis: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    """Host names, each with its subdomains."""
    urls: tuple[str, ...] = ()
    """Patterns, searched in `host:port/path` where a host name is not enough."""
    headers: tuple[str, ...] = ()
    """Lower-case names of response headers; one that ends in `*` is a prefix; `name=value` asks for a value too."""
    body: tuple[BodyMark, ...] = ()
    ports: tuple[int, ...] = ()
    """Ports that the server listens on by default; weaker than what its body says."""
    models: tuple[str, ...] = ()
    """Patterns of models that practically only this server has; the weakest sign."""
    words: Mapping[str, StopRow] = {}
    """Stop words of its own; they go before the format's table."""
    reasoning_under_cap: bool | None = None
    """Whether thinking counts against the output cap, so that usage at the cap proves a cut; None if unknown."""
    cap_source: str = "not known"
    """Why `reasoning_under_cap` is what it is."""
    prefill: Prefill = Prefill.NONE
    prefill_models: tuple[tuple[str, Prefill], ...] = ()
    """Patterns of models with another prefill than the server's; the first that fits."""
    echoes: bool | None = None
    """Whether the answer repeats the prefill; None if that is not known."""
    cap_field: str | None = None
    """How the output cap is named in a chat request, where that is not `max_tokens`."""
    stream_usage: bool = True
    """Whether a streamed chat request may ask for its usage (`stream_options`)."""
    native_fields: tuple[str, ...] = ("native_finish_reason", "eos_reason")
    """Fields that carry the word of the provider behind a router, or of the engine; they may only tighten, so that
    those that routers pass on are read whoever answers."""
    at_cap: Mapping[str, str] = {}
    """Format -> the end-of-turn word that it says over an answer that the output cap cut."""
    context_size: int | None = None
    """Tokens of prompt and output together; of the model that was chosen for, None if unknown."""
    contexts: tuple[tuple[str, int], ...] = ()
    """Patterns of models whose context size is documented."""
    lies: tuple[str, ...] = ()
    """Known wrong statements of this server, each with its source."""


# -- A wire format ---------------------------------------------------------------------------------------------------
# The registry (`loop_core.formats`) names the packages; whoever needs a fact of a format asks its `Format` for it, so
# that a format is added by a package and a line of the registry.


if TYPE_CHECKING:
    from loop_core.wire.serving import Serving


class Home(NamedTuple):
    """The address of the provider that defined a format."""

    base: str
    version: str
    """Goes between base and path, unless `versioned` finds that the base's own path stands for it."""
    versioned: re.Pattern[str]
    key: str
    """The header that carries the key; `authorization` carries it as a bearer token."""
    headers: tuple[tuple[str, str], ...] = ()


ANY_PATH, VERSION = re.compile(r"^/."), re.compile(r"/v\d\w*(?:/|$)")
"""What the path of a base URL says of the version: any path stands for it, or only one that names a version."""


class Encode(Protocol):
    """Encodes a response as the provider would send it."""

    def __call__(self, response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
        """The bytes; `chunk` is the text characters in one delta.

        Raises:
            EncodeError: the format cannot carry the response; `what` names the part.
        """


class ReadRequest(Protocol):
    """Decodes the body of a recorded request."""

    def __call__(self, body: Mapping[str, Any], url: str = "") -> Request:
        """The request; some formats have a part of it in the URL."""


class Recognise(Protocol):
    """Whether a JSON value is of the format."""

    def __call__(self, value: Mapping[str, Any], event: str | None = None) -> bool:
        """Whether it is a whole body, or the event of this name of a stream."""


class Format(NamedTuple):
    """Everything that is specific to one wire format."""

    # -- reading ------------------------------------------------------------------------------------------------
    decoder: type[Decoder]
    paths: Sequence[re.Pattern[str]]
    """URL paths that the format is served under."""
    recognises: Recognise
    reads: tuple[FactRow, ...]
    """Which values of the format's JSON become which facts."""
    stream_reads: tuple[FactRow, ...]
    """Those of them that a stream brings piece by piece."""
    read_request: ReadRequest
    # -- writing ------------------------------------------------------------------------------------------------
    encode: Encode
    loses: Mapping[str, str]
    """The values of a response that the format cannot carry -> why; `encode` refuses them or leaves them out."""
    encode_request: Callable[[Request], dict[str, Any]]
    """The body that the provider expects for a request; what it cannot carry is an `EncodeError`."""
    asking_loses: Mapping[str, str]
    """The values of a request that are lost when it is encoded -> why."""
    path: Callable[[Request], str]
    """Where the request goes, below the version of the API."""
    home: Home
    provider: str
    """The provider's well-known name in the conventions of OpenTelemetry, used if the server is unknown."""
    reduced: Callable[[Tool], Tool] = lambda tool: tool
    """The tool with a schema that the provider takes; what cannot be said is left out, so that it allows more."""
    history: str = "messages"
    """The field of a request body that holds the history; in `prompt` it is one text."""
    no_tools: str = ""
    """Why requests declare no tools and answers call none; empty where they do."""
    stream_type: str = "text/event-stream"
    """The content type of a stream."""
    # -- what a turn may do -------------------------------------------------------------------------------------
    prefills: frozenset[Prefill] = frozenset()
    """The ways of continuing a last assistant message that can be asked for; without any an answer begins anew."""
    chained: Callable[[Request], bool] = lambda request: False
    """Whether the server keeps the history of these requests, so that each goes on from the response before it."""
    body_marks: bool = False
    """Servers spell the cap, the usage of a stream and a prefill each in their own way (`outgoing.body_of`)."""
    cached_apart: bool = False
    """Cached tokens are counted beside the input tokens, not among them."""
    region: str = ""
    """The region that the provider's host is named after, where it is."""
    handovers: Callable[[Sequence[Any]], Sequence[tuple[int, str]]] = lambda parts: ()
    """Where in an answer's text another model went on with it, and who gave way to whom."""
    rules: Mapping[str, tuple[str, ...]] = {}
    """Rule of the decoder -> the facts that it goes by, as provenance names them."""
    word_paths: tuple[tuple[str | int, ...], ...] = ()
    """The path of the stop word in a whole body, as logs keep it; empty if no path is specific to this format."""
    joints: Mapping[str, str] = {}
    """Fact -> what the decoder puts between its pieces."""
    played_in: str = ""
    """Module and name of its `Serving` below `loop_core.wire`; empty where it is `SERVING` of its package's own."""

    def __repr__(self) -> str:
        return f"Format({self.id!r})"  # its tables would fill the screen of whoever sees a traceback

    @property
    def id(self) -> str:
        """The format's name in the registry."""
        return self.decoder.api

    @property
    def stop_reasons(self) -> Mapping[str, StopRow]:
        """Native word -> mapped reason."""
        return self.decoder.stop_reasons

    @property
    def polls(self) -> bool:
        """Whether an unfinished response can be fetched by its id."""
        return any(row.detail == "poll" for row in self.stop_reasons.values())

    @property
    def serving(self) -> "Serving":
        """How the scripted provider plays a server of the format; loaded when it is needed."""
        module, _, name = (self.played_in or f"{self.id}.serving:SERVING").partition(":")
        value: Serving = getattr(import_module(f"loop_core.wire.{module}"), name)
        return value
