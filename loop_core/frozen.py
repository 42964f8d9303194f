"""Values and records: what `dataclasses` makes of a class of annotated fields, at a fortieth of the cost.

A program declares many such classes and a short run fills few of them, so a class's constructor is compiled when its
first value is made, and what compares, hashes and shows values is shared by all. A standard frozen `__init__` goes
through `object.__setattr__` for every field; here a draft with the same slots is filled without, and becomes the frozen
value before anybody sees it. `dataclasses.fields`, `asdict` and `replace` take these values for their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")
Classes = Callable[[type[T]], type[T]]


class _Made(NamedTuple):
    """A default that is made anew for each value."""

    make: Callable[[], Any]


def field(*, default_factory: Callable[[], T]) -> T:
    """A field's default that is made anew for each value, as `dataclasses.field` says it."""
    return _Made(default_factory)  # type: ignore[return-value]


if TYPE_CHECKING:
    from dataclasses import replace as replace  # the type checker knows its arguments
else:

    def replace(value: T, /, **changes: Any) -> T:
        """A value like this one with some fields changed."""
        return value._changed(changes)


def changed(value: T, changes: Mapping[str, Any], /) -> T:
    """The same for changes that are gathered in a mapping, which a machine that moves often need not copy."""
    new: T = value._changed(changes)  # type: ignore[attr-defined]
    return new


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[T] | None = None, /, *, eq: bool = True, repr: bool = True) -> Any:  # noqa: A002
    """Makes a class one of frozen, slotted values: `@frozen`, or `@frozen(eq=False, repr=False)`.

    Without `eq`, values compare by identity; without `repr`, large ones are not spelled out. `__post_init__` runs where
    a class has it. Fields are not inherited.
    """
    shared = {**_ANY, **_FROZEN, **(_EQUAL if eq else {}), **(_SHOWN if repr else {})}
    return _decorator(kind, shared)


@dataclass_transform(field_specifiers=(field,))
def record(kind: type[T] | None = None, /, *, eq: bool = True, repr: bool = True) -> Any:  # noqa: A002
    """The same for slotted records that are filled on the way."""
    shared = {**_ANY, **({**_EQUAL, "__hash__": None} if eq else {}), **(_SHOWN if repr else {})}
    return _decorator(kind, shared)


def _decorator(kind: type[Any] | None, shared: Mapping[str, Any]) -> Any:
    return (lambda kind: _slotted(kind, shared)) if kind is None else _slotted(kind, shared)


def _slotted(kind: type[Any], shared: Mapping[str, Any]) -> type[Any]:
    own = dict(kind.__dict__)
    names = tuple(name for name, told in own.get("__annotations__", {}).items() if not told.startswith("ClassVar"))
    defaults = {name: own.pop(name) for name in names if name in own}
    for name in ("__dict__", "__weakref__"):
        own.pop(name, None)

    def first(kind: type[Any], /, *given: Any, **named: Any) -> Any:
        _compile(made, names, defaults, draft="__setattr__" in shared)
        return kind(*given, **named)

    fields = _Fields(names, defaults)
    own |= {
        "__slots__": names, "__match_args__": names, "__new__": first, "__dataclass_fields__": fields,
        "__signature__": _Signature(fields), "_compared": attrgetter("__class__", *names),
    }
    made = type(kind.__name__, kind.__bases__, {**shared, **own})
    return made


def _compile(kind: Any, names: tuple[str, ...], defaults: Mapping[str, Any], *, draft: bool) -> None:
    """Gives a class its constructor and what `replace` calls."""
    begin = " _value = _draft()" if draft else " _value = _new(_kind)"
    end = [" _value.__class__ = _kind"] if draft else []
    if hasattr(kind, "__post_init__"):
        end.append(" _value.__post_init__()")
    end.append(" return _value")
    lines = [
        f"def __new__(_kind, /, {', '.join([_parameter(name, defaults) for name in names])}):",
        begin, *[f" _value.{name} = {_given(name, defaults)}" for name in names], *end,
        "def _changed(_old, _changes):", " _kind = _old.__class__",
        begin, *[f" _value.{name} = _old.{name}" for name in names],
        " for _name, _given in _changes.items():", "  _set(_value, _name, _given)", *end,
    ]
    space = {f"_{name}_default": default for name, default in defaults.items()}
    space |= {"_draft": type("_Draft", kind.__bases__, {"__slots__": names}), "_new": object.__new__, "_set": setattr}
    exec("\n".join(lines), space)  # noqa: S102 - names of fields, as `dataclasses` does it
    kind.__new__, kind._changed = staticmethod(space["__new__"]), space["_changed"]


def _parameter(name: str, defaults: Mapping[str, Any]) -> str:
    return f"{name}=_{name}_default" if name in defaults else name


def _given(name: str, defaults: Mapping[str, Any]) -> str:
    made = isinstance(defaults.get(name), _Made)
    return f"{name} if {name} is not _{name}_default else _{name}_default.make()" if made else name


# -- what all of them share ------------------------------------------------------------------------------------------


class _Fields:
    """What the functions of `dataclasses` ask for; made, by that module, when one of them asks."""

    def __init__(self, names: tuple[str, ...], defaults: Mapping[str, Any]) -> None:
        self._names, self._defaults = names, defaults

    def __get__(self, value: Any, kind: type[Any]) -> Any:
        fields = vars(self.standard(kind))["__dataclass_fields__"]
        kind.__dataclass_fields__ = fields
        return fields

    def standard(self, kind: type[Any]) -> type[Any]:
        """The same class as `dataclasses` makes it."""
        import dataclasses

        made = [(name, kind.__annotations__[name], self._field(name)) for name in self._names]
        return dataclasses.make_dataclass(kind.__name__, made)

    def _field(self, name: str) -> Any:
        import dataclasses

        default = self._defaults.get(name, dataclasses.MISSING)
        if isinstance(default, _Made):
            return dataclasses.field(default_factory=default.make)
        return dataclasses.field(default=default)


class _Signature:
    """What `help` and `inspect.signature` ask a class for: its fields, before its constructor was compiled too."""

    def __init__(self, fields: _Fields) -> None:
        self._fields = fields

    def __get__(self, value: Any, kind: type[Any]) -> Any:
        import inspect

        return inspect.signature(self._fields.standard(kind))


def _eq(value: Any, other: Any) -> Any:
    if other.__class__ is not value.__class__:
        return NotImplemented
    return value._compared(value) == value._compared(other)


def _hash(value: Any) -> int:
    return hash(value._compared(value))


def _repr(value: Any) -> str:
    fields = ", ".join([f"{name}={getattr(value, name)!r}" for name in value.__match_args__])
    return f"{value.__class__.__qualname__}({fields})"


def _reduce(value: Any) -> tuple[Any, ...]:
    return value.__class__, tuple([getattr(value, name) for name in value.__match_args__])


def _setattr(value: object, name: str, given: object) -> NoReturn:
    raise AttributeError(f"{value.__class__.__name__} is frozen: {name} stays as it is")


def _delattr(value: object, name: str) -> NoReturn:
    raise AttributeError(f"{value.__class__.__name__} is frozen: {name} stays")


_ANY = {"__reduce__": _reduce}
_FROZEN = {"__setattr__": _setattr, "__delattr__": _delattr}
_EQUAL = {"__eq__": _eq, "__hash__": _hash}
_SHOWN = {"__repr__": _repr}
