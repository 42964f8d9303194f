"""Defines the values that describe a wire format, and a server that speaks it.

Each format's package exports a `Format` as `FORMAT`. The rows of `servers` are values of `Profile`; `profiles` chooses
one of them.
"""

# Annotations are not postponed: of a named tuple each would be compiled from text at every start.
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from loop_core.json_parser import JsonPath
from loop_core.values import ChatResponse, Request, Tool
from loop_core.wire.base import Decoder
from loop_core.wire.failures import StopRow
from loop_core.wire.reads import FactRow


class Prefill(StrEnum):
    """How a server can be asked to continue the text of a response."""

    NONE = "none"
    """The server cannot continue a text, or nothing is known about it. A message asks for the rest."""
    PLAIN = "plain"
    """The request ends with an assistant message that holds the text."""
    PREFIX = "prefix"
    """The last assistant message also has the member `prefix: true`."""
    PARTIAL = "partial"
    """The last assistant message also has the member `partial: true`."""
    CONTINUE_FINAL_MESSAGE = "continue_final_message"
    """The request has `continue_final_message: true` and `add_generation_prompt: false` beside the last assistant
    message."""


class BodyMark(NamedTuple):
    """A value of the body (or of the first event of a stream) that identifies a server."""

    path: JsonPath
    pattern: str = ""
    """A pattern that is searched in the value's text (its JSON if it is not a string). The default only requires that
    the key is present."""


def mark(*path: str | int, like: str = "") -> BodyMark:
    """A mark at this path whose text matches the pattern."""
    return BodyMark(path, like)


class Profile(NamedTuple):
    """What is known about a server, or a kind of server: how it is recognised, and how it differs from others."""

    name: str
    apis: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    """Host names of the server. Each includes its subdomains."""
    urls: tuple[str, ...] = ()
    """Patterns that are searched in `host:port/path`, for servers that a host name alone does not identify."""
    headers: tuple[str, ...] = ()
    """Lower-case names of response headers that identify the server. A name that ends in `*` is a prefix; `name=value`
    also requires the value."""
    body: tuple[BodyMark, ...] = ()
    ports: tuple[int, ...] = ()
    """The ports that the server listens on by default. A port is a weaker sign than a mark in the body."""
    models: tuple[str, ...] = ()
    """Patterns of model names that practically only this server has. A model is the weakest sign."""
    words: Mapping[str, StopRow] = {}
    """Native word -> mapped reason, for stop words of this server, which are tried before the format's."""
    reasoning_under_cap: bool | None = None
    """Whether thinking counts against the output cap, so that usage equal to the cap proves a cut; None if unknown."""
    cap_source: str = "not known"
    """The source of `reasoning_under_cap`, or the reason why nothing is known."""
    prefill: Prefill = Prefill.NONE
    prefill_models: tuple[tuple[str, Prefill], ...] = ()
    """Patterns of model names with another prefill than the server's. The first matching pattern counts."""
    echoes: bool | None = None
    """Whether the answer repeats the prefill; None if unknown."""
    cap_field: str | None = None
    """The name of the output cap in a chat request; None if it is `max_tokens`."""
    stream_usage: bool = True
    """Whether a streamed chat request may request usage (`stream_options`)."""
    native_fields: tuple[str, ...] = ("native_finish_reason", "eos_reason")
    """Fields with the stop word of an engine, or of the provider behind a router. Such a word may only make a reason
    stricter, so the fields that routers pass on are read for every server."""
    at_cap: Mapping[str, str] = {}
    """Format -> the end-of-turn word that the server sends over an answer that the output cap cut."""
    mends_calls: tuple[str, ...] = ()
    """Formats in which the server closes the arguments of a cut call and sends them as an object, as if whole."""
    context_size: int | None = None
    """The largest number of tokens of prompt and output together, for the chosen model if known; None if unknown."""
    contexts: tuple[tuple[str, int], ...] = ()
    """Patterns of model names, each with the documented context size of these models."""
    lies: tuple[str, ...] = ()
    """Wrong statements that this server is known to make, each with its source."""


# -- A wire format ---------------------------------------------------------------------------------------------------
# The registry (`loop_core.formats`) names the packages; code that needs a fact of a format reads its `Format`, so
# that a format is added by a package and a line of the registry.


if TYPE_CHECKING:
    from loop_core.wire.serving import Serving


class Home(NamedTuple):
    """The address of the provider that defined a format."""

    base: str
    version: str
    """The version part of the path. It follows the base URL unless `versioned` matches the path of the base URL."""
    versioned: re.Pattern[str]
    key: str
    """The name of the header that carries the key. `authorization` carries it as a bearer token."""
    headers: tuple[tuple[str, str], ...] = ()
    variables: tuple[str, ...] = ()
    """The environment variables from which clients take the base URL, in the form of `Serving.base`. Source: the
    provider's SDKs; `…_API_BASE`: LiteLLM."""


ANY_PATH, VERSION = re.compile(r"^/."), re.compile(r"/v\d\w*(?:/|$)")
"""The two usual patterns for `Home.versioned`: any path replaces the version, or only a path that names one."""


class Encode(Protocol):
    """Encodes a response as the provider would send it."""

    def __call__(self, response: ChatResponse, *, stream: bool = False, chunk: int = 16) -> Iterator[bytes]:
        """The bytes; `chunk` is the text characters in one delta. Raises `EncodeError` if the format cannot carry the
        response; `what` names the part."""


class ReadRequest(Protocol):
    """Decodes the body of a recorded request."""

    def __call__(self, body: Mapping[str, Any], url: str = "") -> Request:
        """The request. Some formats have a part of it in the URL."""


class Recognise(Protocol):
    """Tells whether a JSON value is of the format."""

    def __call__(self, value: Mapping[str, Any], event: str | None = None) -> bool:
        """Whether the value is a whole body, or the event of this name in a stream. A bare error body is neither, since
        several formats share its shape."""


class Format(NamedTuple):
    """Everything that is specific to one wire format."""

    # -- reading ------------------------------------------------------------------------------------------------
    decoder: type[Decoder]
    paths: Sequence[re.Pattern[str]]
    """Patterns of the URL paths under which servers offer this format."""
    recognises: Recognise
    reads: tuple[FactRow, ...]
    """The rows that say which values of a whole body become which facts."""
    stream_reads: tuple[FactRow, ...]
    """The rows for values that a stream delivers piece by piece."""
    read_request: ReadRequest
    # -- writing ------------------------------------------------------------------------------------------------
    encode: Encode
    loses: Mapping[str, str]
    """Part of a response that the format cannot carry -> why. `encode` refuses such a part or leaves it out."""
    encode_request: Callable[[Request], dict[str, Any]]
    """Makes the body that the provider expects for a request. Raises `EncodeError` for what it cannot carry."""
    asking_loses: Mapping[str, str]
    """Part of a request that is lost when the request is encoded -> why."""
    path: Callable[[Request], str]
    """Makes the URL path of a request, without the version of the API."""
    home: Home
    provider: str
    """The provider's well-known name in the conventions of OpenTelemetry, which is used if the server is unknown."""
    reduced: Callable[[Tool], Tool] = lambda tool: tool
    """Reduces a tool's schema to what the provider accepts. It leaves out what the provider cannot express, so the
    result allows more."""
    history: str = "messages"
    """The name of the member of a request body that holds the history. Under `prompt` the history is one text."""
    no_tools: str = ""
    """The reason why requests cannot declare tools and answers hold no calls; empty if the format has tools."""
    stream_type: str = "text/event-stream"
    """The content type of a streamed response."""
    # -- what a turn may do -------------------------------------------------------------------------------------
    prefills: frozenset[Prefill] = frozenset()
    """The ways in which a request can continue a last assistant message. Without any, an answer always begins again."""
    chained: Callable[[Request], bool] = lambda request: False
    """Tells whether the server stores the history of such a request, so that the next can refer to its response."""
    body_marks: bool = False
    """Whether servers of this format name the cap, the usage of a stream and a prefill in their own ways
    (`outgoing.body_of`)."""
    signed_alike: frozenset[str] = frozenset()
    """The other formats whose reasoning may be sent in this one; requests leave out all other reasoning."""
    container: tuple[str, str] | None = None
    """The native word of a response that names the container in which the provider ran code, and the member in which
    the next request has to name it; None if the format has none."""
    cached_apart: bool = False
    """Whether cached tokens are counted in addition to the input tokens, instead of among them."""
    region: str = ""
    """The region in the name of the provider's host; empty if the name has none."""
    handovers: Callable[[Sequence[Any]], Sequence[tuple[int, str]]] = lambda parts: ()
    """Finds the positions in an answer's text where another model took over, with the names of both models."""
    rules: Mapping[str, tuple[str, ...]] = {}
    """Rule of the decoder -> the facts on which the rule is based, as provenance names them."""
    word_paths: tuple[JsonPath, ...] = ()
    """The paths of the stop word in a whole body, for logs that keep such; empty if no path is this format's alone."""
    loads: frozenset[str] = frozenset()
    """The stop words that answer a request without a message, which only loads or unloads a model."""
    whole_mark: tuple[str, str] | None = None
    """The member, and its value, by which a JSON object is a whole answer; None if pieces of streams may have it."""
    joints: Mapping[str, str] = {}
    """Fact -> the text that the decoder puts between its pieces."""
    played_in: str = ""
    """The module below `loop_core.wire` and the name of the format's `Serving` in it (`module:NAME`); empty if it is
    `SERVING` in the format's own package."""

    def __repr__(self) -> str:
        return f"Format({self.id!r})"  # its tables would fill the screen with each traceback

    @property
    def id(self) -> str:
        """The format's name in the registry."""
        return self.decoder.api

    @property
    def stop_reasons(self) -> Mapping[str, StopRow]:
        """Native word -> the mapped reason, by this format's table."""
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
