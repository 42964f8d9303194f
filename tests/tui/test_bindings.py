"""Every binding of the app: it has an id to be remapped by, a text for the help, and an action; no key has two."""

from __future__ import annotations

from itertools import combinations

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import _character_to_key
from textual.screen import Screen

from inspector.tui.app import LoopInspector
from inspector.tui.keys import check_keys, every_id, owners
from loop_core.errors import CallerError

OWNERS = owners()
each_owner = pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)


def made_of(kind: type[DOMNode]) -> set[type[DOMNode]]:
    """A class and all that derive from it: a screen that declares nothing itself may be made of many that do."""
    return {kind}.union(*(made_of(below) for below in kind.__subclasses__()))


OURS = {kind for kind in set().union(*map(made_of, OWNERS)) if kind.__module__.startswith("inspector.tui.")}
WHOLE = sorted(OURS, key=lambda kind: (kind.__module__, kind.__name__))


def bindings(owner: type[DOMNode]) -> list[Binding]:
    return [each for each in owner.BINDINGS if isinstance(each, Binding)]


def keys(owner: type[DOMNode]) -> list[str]:
    """The names of the keys: a binding may name a key by its character, `/` for `slash`."""
    return [_character_to_key(key) if len(key) == 1 else key
            for each in bindings(owner) for key in each.key.split(",")]


@each_owner
def test_a_binding_can_be_remapped_read_about_and_done(owner: type[DOMNode]) -> None:
    assert len(bindings(owner)) == len(owner.BINDINGS), "a binding without an id and a tooltip"
    places = {"": [owner, *getattr(owner, "PARTS", ()), LoopInspector], "app": [LoopInspector], "screen": [
        kind for kind in OWNERS if issubclass(kind, Screen)]}
    for each in bindings(owner):
        assert each.id, f"{each.key} has no id"
        assert each.tooltip, f"{each.id} has no tooltip"
        scope, _, name = each.action.partition("(")[0].rpartition(".")
        assert any(hasattr(kind, f"action_{name}") for kind in places[scope]), f"{each.id} has no action"


@pytest.mark.parametrize("whole", WHOLE, ids=lambda whole: whole.__name__)
def test_a_key_does_one_thing_in_one_place(whole: type[DOMNode]) -> None:
    """In a class, and among the classes that it is made of; one that derives from another may change a key of it."""
    declared = [kind for kind in whole.__mro__ if kind in OWNERS]
    for kind in declared:
        assert len(keys(kind)) == len(set(keys(kind)))
    for one, other in combinations(declared, 2):
        if not issubclass(one, other):
            assert set(keys(one)) & set(keys(other)) == set(), (one, other)


def test_no_method_is_called_because_its_name_is_that_of_a_key() -> None:
    """Textual calls `key_at` of the widget with the focus when `@` is pressed."""
    ours = [kind for kind in made_of(DOMNode) if kind.__module__.startswith("inspector.")]
    assert len(ours) > len(OURS)
    names = [f"{kind.__name__}.{name}" for kind in ours for name in vars(kind)]
    assert [name for name in names if name.partition(".")[2].startswith(("key_", "_key_"))] == []


def test_a_binding_of_any_screen_may_be_remapped_and_no_other() -> None:
    assert {"step.forward", "tree.remove", "stops.add", "prompt.complete", "palette", "list.down"} <= set(every_id())
    check_keys({"tree.remove": "f8", "stops.add": "f9,plus"})
    with pytest.raises(CallerError, match=r"did you mean tree\.remove"):
        check_keys({"tree.removes": "f8"})
