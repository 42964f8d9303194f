"""Values and records: what `dataclasses` promises of `@dataclass(frozen=True, slots=True)` holds for ours."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import ClassVar

import pytest

from loop_core.frozen import field, frozen, record, replace


@frozen
class Point:
    """A place."""

    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list)

    @property
    def both(self) -> int:
        return self.x + self.y


@frozen
class Alone:
    word: str


@frozen
class Nothing:
    pass


@frozen(eq=False, repr=False)
class Large:
    text: str = ""


@frozen
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("odd")


@record
class Filled:
    words: list[str] = field(default_factory=list)
    count: int = 0


STANDARD = dataclasses.make_dataclass(
    "Point", [("x", int), ("y", int, 2), ("names", list[str], dataclasses.field(default_factory=list))],
    frozen=True, slots=True)


def test_fields_are_given_by_place_and_by_name_and_have_defaults():
    assert (Point(1).x, Point(1).y, Point(1).names) == (1, 2, [])
    assert Point(1, y=5, names=["a"]).both == 6
    assert Point.kind == "point"
    assert Point.__doc__ == "A place."


@pytest.mark.parametrize(("given", "named"), [((), {}), ((1, 2, [], 4), {}), ((1,), {"z": 1}), ((1,), {"x": 1})])
def test_wrong_fields_are_a_type_error_as_in_the_standard(given, named):
    for kind in (STANDARD, Point):
        with pytest.raises(TypeError):
            kind(*given, **named)


def test_a_made_default_is_made_for_each():
    one, other = Point(1), Point(1)
    one.names.append("x")
    assert other.names == []


@pytest.mark.parametrize("value", [Point(1), Alone("a"), Large("a")])
def test_a_value_cannot_be_changed(value):
    name = value.__match_args__[0]
    with pytest.raises(AttributeError):
        setattr(value, name, 3)
    with pytest.raises(AttributeError):
        delattr(value, name)
    with pytest.raises(AttributeError):
        value.other = 3
    assert not hasattr(value, "__dict__")


def test_values_are_equal_by_kind_and_fields():
    assert Point(1) == Point(1, 2)
    assert Point(1) != Point(2)
    assert Alone("a") != "a"
    assert Alone("a") != Large("a")
    assert Nothing() == Nothing()
    assert {Alone("a"), Alone("a")} == {Alone("a")}
    assert hash(Nothing()) == hash(Nothing())
    with pytest.raises(TypeError):
        hash(Point(1))  # it holds a list


def test_without_eq_a_value_is_only_itself():
    assert Large("a") != Large("a")
    assert len({Large("a"), Large("a")}) == 2


def test_repr():
    assert repr(Point(1)) == repr(STANDARD(1)) == "Point(x=1, y=2, names=[])"
    assert repr(Nothing()) == "Nothing()"
    assert "text" not in repr(Large("a"))


@pytest.mark.parametrize("change", [replace, dataclasses.replace])
def test_replace_makes_another_and_leaves_the_first(change):
    first = Point(1, names=["a"])
    second = change(first, x=7)
    assert (second.x, second.y, second.names) == (7, 2, ["a"])
    assert first.x == 1
    assert type(second) is Point
    with pytest.raises(AttributeError):
        second.x = 3


def test_a_field_that_is_none_cannot_be_replaced():
    with pytest.raises(AttributeError):
        replace(Point(1), z=1)


def test_a_check_runs_whenever_a_value_is_made():
    assert replace(Even(2), number=4).number == 4
    with pytest.raises(ValueError, match="odd"):
        Even(1)
    with pytest.raises(ValueError, match="odd"):
        replace(Even(2), number=3)


def test_a_record_is_filled_and_compared_but_never_a_key():
    filled = Filled()
    filled.words.append("a")
    filled.count += 1
    assert filled == Filled(["a"], 1)
    assert Filled().words == []
    assert repr(filled) == "Filled(words=['a'], count=1)"
    with pytest.raises(AttributeError):
        filled.other = 1
    with pytest.raises(TypeError):
        hash(filled)


def test_the_functions_of_dataclasses_know_these_values():
    assert [each.name for each in dataclasses.fields(Point)] == ["x", "y", "names"]
    assert [each.default for each in dataclasses.fields(Point)][1] == 2
    assert dataclasses.asdict(Point(1, names=["a"])) == {"x": 1, "y": 2, "names": ["a"]}
    assert dataclasses.is_dataclass(Nothing)


@pytest.mark.parametrize("value", [Point(1, 2, ["a"]), Alone("a"), Nothing(), Filled(["b"], 3)])
def test_values_are_copied_and_pickled(value):
    for made in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert made == value
