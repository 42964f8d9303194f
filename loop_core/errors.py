"""The errors of the engine: one base class, and subclasses that say whose fault it was.

Bad input raises no other error. The subclasses separate invalid bytes of a provider from an impossible request of a
caller, because different people have to correct the two.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class LoopError(Exception):
    """Base of every error that this package raises on purpose."""


class DecodeError(LoopError):
    """The bytes of a response or of a request are not what the wire format allows. `offset` counts bytes of the body
    from 0; `expected` says what would have been accepted there."""

    def __init__(self, message: str, *, api: str = "", offset: int = 0, expected: str = "") -> None:
        # Only the message is an argument: unpickling an error from another process calls the class with it.
        super().__init__(message)
        self.message, self.api, self.offset, self.expected = message, api, offset, expected

    def __str__(self) -> str:
        where = f"{self.api}: byte {self.offset}" if self.api else f"byte {self.offset}"
        return f"{where}: {self.message}" + (f"; expected {self.expected}" if self.expected else "")


class EncodeError(LoopError):
    """A response or a request holds something that the wire format cannot carry; `what` names it."""

    def __init__(self, message: str, *, api: str = "", what: str = "") -> None:
        super().__init__(message)
        self.message, self.api, self.what = message, api, what

    def __str__(self) -> str:
        return f"{self.api}: {self.message}" if self.api else self.message


class CallerError(LoopError):
    """The caller asked for something that does not exist, or passed a value of a wrong type or out of range."""


class TransitionError(CallerError):
    """The event cannot happen in this state, or it is not an event."""


class ForeignError(LoopError):
    """Code of the caller, such as a signer, raised another exception, which is the `__cause__` of this one."""


def check_kinds(*rows: tuple[str, object, type]) -> None:
    """Raises `CallerError` if an argument has the wrong type. A row is the argument's name, its value and its type."""
    for name, value, kind in rows:
        if not isinstance(value, kind):
            expected = "a text" if kind is str else kind.__name__
            raise CallerError(f"{name}: expected {expected}, not {type(value).__name__}")


def check_methods(name: str, value: object, kind: type) -> None:
    """Raises `CallerError` if an argument lacks a public method of a class."""
    lacks = [each for each in vars(kind) if not each.startswith("_") and not callable(getattr(value, each, None))]
    if lacks:
        raise CallerError(f"{name}: expected {kind.__name__}, not {type(value).__name__}, which has no method "
                          f"{', '.join(lacks)}")


UNREADABLE = "unreadable_body"
"""The type of a `ProviderError` that no provider reported: the body is not an answer of its format."""
MOST_SECONDS = 1_000_000
"""The longest time in seconds that a client can wait. Operating systems refuse a longer or an infinite one."""


def check_seconds(value: object, names: Iterable[str]) -> None:
    """Raises `CallerError` if one of the fields is not a number of seconds in the permitted range."""
    for name in names:
        seconds = getattr(value, name)
        if not isinstance(seconds, (int, float)) or not 0 <= seconds <= MOST_SECONDS:  # also true for `nan`
            raise CallerError(f"{name}: {seconds!r} is not a number of seconds from 0 to {MOST_SECONDS:,}")


@contextmanager
def foreign(name: str = "") -> Iterator[None]:
    """Returns a context for code of the caller: any exception except a `LoopError` becomes a `ForeignError`, whose
    message begins with the name of that code, if one is given."""
    try:
        yield
    except LoopError:
        raise
    except Exception as why:
        raise ForeignError(f"{name}: {words_of(why)}" if name else words_of(why)) from why


def words_of(why: BaseException) -> str:
    """Returns the message of an exception, after its type unless it is a `LoopError`."""
    from traceback import TracebackException

    # Not `str(why)`: `__str__` may be foreign code that raises.
    words = str(TracebackException(type(why), why, None))
    return words if isinstance(why, LoopError) else f"{type(why).__name__}: {words}"


def failure_words(status: int | None, words: str) -> str:
    """Describes a request without a whole answer: its HTTP status and `words`; empty if neither is known."""
    return ", ".join(each for each in ("" if status is None else f"HTTP {status}", words) if each)
