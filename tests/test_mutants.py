"""The mutation check finds every table, and the tests that belong to it, without a list of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import mutants
from tests.scenes import rows as scene_rows
from tests.scenes.rows import each_row

WORDS = '''
from dataclasses import dataclass
from types import MappingProxyType

@dataclass(frozen=True)
class Pages:
    columns: tuple[str, ...]
    title: str = ""

STOPS = {"ripe": 1, "sour": 2}
FRUITS = ("plum", "pear")
BERRIES = frozenset({"currant", "sloe"})
LOCKED = MappingProxyType({"stone": 1})
PAGES = Pages(("first", "second"))
COPY = STOPS
_INNER = ("core", "pip")
EMPTY: tuple[str, ...] = ()
LIMIT = 3
lower = ("no", "table")
'''

COPIES = '''
from orchard.trees import words
from orchard.trees.words import STOPS as S

OWN = {"STOPS": 1}

def rows(): return list(S)
def test_copy(): assert rows()
def test_module(): assert words.STOPS
def test_behaviour(): assert OWN["STOPS"] and words.press("ripe")
'''


@pytest.fixture
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout with one module of tables, one that imports it, and tests of both and of neither."""
    files = {
        "orchard/__init__.py": "", "orchard/trees/__init__.py": "", "orchard/trees/words.py": WORDS,
        "orchard/trees/press.py": "from orchard.trees.words import STOPS\n",
        "tests/trees/test_words.py": "def test_one(): pass\n",
        "tests/trees/test_press.py": "from orchard.trees import press\n",
        "tests/roads/test_roads.py": "def test_other(): pass\n",
        "tests/roads/test_fruit.py": "def test_far(): assert 'plum pear'\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "orchard"]:
        del sys.modules[name]


def test_a_new_table_is_found_without_being_named_anywhere(orchard: Path) -> None:
    found = mutants.rows(orchard, ("orchard",))
    assert {row.title for row in found} == {
        "orchard.trees.words.STOPS[ripe]", "orchard.trees.words.STOPS[sour]", "orchard.trees.words.FRUITS[plum]",
        "orchard.trees.words.FRUITS[pear]", "orchard.trees.words.BERRIES[currant]", "orchard.trees.words.BERRIES[sloe]",
        "orchard.trees.words.LOCKED[stone]", "orchard.trees.words.PAGES.columns[first]",
        "orchard.trees.words.PAGES.columns[second]"}


@pytest.mark.parametrize(("name", "label", "first"), [
    ("STOPS", "ripe", ["tests/trees/test_words.py", "tests/trees/test_press.py"]),
    ("FRUITS", "plum", ["tests/trees/test_words.py", "tests/roads/test_fruit.py"]),
    ("LOCKED", "roads", ["tests/trees/test_words.py", "tests/roads/test_roads.py"]),
])
def test_its_tests_are_found_by_name_room_imports_and_words(
        orchard: Path, name: str, label: str, first: list[str]) -> None:
    row = mutants.Row(mutants.Table("orchard.trees.words", name), 0, label, words=mutants.words_of(label))
    assert mutants.likely(row, {}, orchard, ("orchard",))[:len(first)] == first


def test_files_that_missed_other_rows_come_first(orchard: Path) -> None:
    row = mutants.Row(mutants.Table("orchard.trees.press", "LIMITS"), 0, "ripe")
    missed = {row.table: ["tests/roads/test_roads.py::test_other"]}
    assert mutants.likely(row, missed, orchard, ("orchard",)).index("tests/roads/test_roads.py") < mutants.likely(
        row, {}, orchard, ("orchard",)).index("tests/roads/test_roads.py")


def test_a_likely_file_runs_first_unless_another_takes_much_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "rare_tests", lambda _path, _words: {"test_rare"})
    took = {"likely.py": {"likely.py::test_slow": 3.0, "likely.py::test_it[1]": 0.0, "likely.py::test_it[2]": 0.0},
            "other.py": {"other.py::test_rare": 0.2}, "last.py": {"last.py::test_it": 0.01}}
    row = mutants.Row(mutants.Table("orchard.trees.press", "LIMITS"), 0, "ripe")
    files = ["likely.py", "other.py", "new.py", "last.py"]
    likely, quick, slow = mutants.Place
    assert mutants.Behavioural(took, row, ()).turns(files) == [
        ("likely.py", quick), ("new.py", None), ("other.py", likely), ("last.py", quick), ("likely.py", slow)]
    assert mutants.Behavioural(took, row, ["last.py::test_it"]).turns(files)[0] == ("last.py", likely)


def test_the_words_of_a_test_are_those_of_its_source_and_of_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "test_words.py"
    path.write_text(COPIES)
    found = mutants.texts(str(path))
    assert {name: {"list", "stops", "ripe", "words"} & said for name, said in found.items()} == {
        "test_copy": {"list"}, "test_module": {"stops", "words"}, "test_behaviour": {"stops", "ripe", "words"}}


def test_a_word_that_few_tests_of_a_file_have_names_them(tmp_path: Path):
    path = tmp_path / "test_plums.py"
    path.write_text("def test_stone(): assert 'plum stone'\n"
                    + "".join(f"def test_{at}(): assert 'plum'\n" for at in range(mutants.FEW)))
    assert mutants.rare_tests(str(path), frozenset({"stone", "pear"})) == {"test_stone"}
    assert not mutants.rare_tests(str(path), frozenset({"plum"}))


def test_a_test_whose_source_has_rare_words_of_the_row_runs_first(tmp_path: Path) -> None:
    path = tmp_path / "test_words.py"
    path.write_text(COPIES)
    row = mutants.Row(mutants.Table("orchard.trees.words", "STOPS"), 0, "ripe", words=frozenset({"ripe"}))
    plugin = mutants.Behavioural({}, row, ())

    def place(name: str) -> tuple[float, float]:
        item = SimpleNamespace(nodeid=f"test_words.py::{name}", path=path, name=name)
        return plugin.order(item)

    assert min(("test_copy", "test_module", "test_behaviour"), key=place) == "test_behaviour"


def test_files_are_named_for_a_table_or_for_all_tables_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "OF_NAME", {"STOPS": ("test_all.py",), "words.STOPS": ("test_words.py",)})
    assert mutants.of_name(mutants.Table("orchard.trees.words", "STOPS")) == ("test_words.py",)
    assert mutants.of_name(mutants.Table("orchard.trees.press", "STOPS")) == ("test_all.py",)
    assert mutants.of_name(mutants.Table("orchard.trees.press", "BERRIES")) == ()


def test_the_files_that_are_named_are_there() -> None:
    named = {file for files in mutants.OF_NAME.values() for file in files}
    assert {file for file in named if not (mutants.ROOT / file).is_file()} == set()


def test_the_parts_are_all_rows_each_once() -> None:
    tables = [mutants.Table("orchard.words", name) for name in ("STOPS", "BERRIES", "TREES", "TOOLS")]
    rows = [mutants.Row(table, at, "ripe") for table in tables for at in range(10)]
    parts = [mutants.rows_of(rows, *mutants.part(f"{number}/3")) for number in (1, 2, 3)]
    assert [[row.table.name for row in each[::10]] for each in parts] == [["STOPS", "BERRIES"], ["TREES"], ["TOOLS"]]
    assert [row for each in parts for row in each] == mutants.rows_of(rows, 1, 1) == rows


def test_a_word_of_any_alphabet_tells_which_file_is_likely() -> None:
    assert mutants.WORD.findall("[流已中断] [flux_interrompu] [a]") == ["流已中断", "flux_interrompu"]


@each_row("text", ["0/3", "4/3", "3", "a/b"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        mutants.part(text)


def test_a_row_is_deleted_from_a_table_of_any_kind() -> None:
    assert mutants.without({"a": 1, "b": 2}, (0,)) == {"b": 2}
    assert mutants.without(("a", "b"), (1,)) == ("a",)
    assert mutants.without(frozenset({"a", "b"}), (0,)) == {"b"}
    assert mutants.without((("a", "b"), ("c",)), (0, 1)) == (("a",), ("c",))
    assert mutants.without({"a": ("x", "y")}, (0, 0)) == {"a": ("y",)}


def test_a_test_that_names_the_table_is_a_copy_of_it(tmp_path: Path) -> None:
    path = tmp_path / "test_copy.py"
    path.write_text(COPIES)
    found = mutants.copies(str(path), mutants.Table("orchard.trees.words", "STOPS"))
    assert {name for name in found if name.startswith("test_")} == {"test_copy", "test_module"}


def test_a_test_whose_fixture_is_in_no_plugin_that_is_loaded_misses_no_row(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Every row of some tables seemed to be missed by the first test that compares a picture."""
    item = request.node
    assert not mutants.lacks_fixture(item)
    assert mutants.lacks_fixture(SimpleNamespace(fixturenames=[*item.fixturenames, "a_picture"],
                                                 _fixtureinfo=item._fixtureinfo))


def test_a_module_is_shared_once_no_row_is_left_of_it_nor_of_what_it_imports(
    orchard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gc.freeze", lambda: None)
    every = mutants.rows(orchard, ("orchard",))
    for name in ("orchard.trees.words", "orchard.trees.press"):
        sys.modules.pop(name, None)
    shared = mutants.SharedModules(every, orchard, ("orchard",))
    shared.share()
    for row in every:
        assert not {"orchard.trees.words", "orchard.trees.press"} & sys.modules.keys()
        shared.done(row)
    assert {"orchard.trees.words", "orchard.trees.press"} <= sys.modules.keys()


def test_no_module_is_shared_without_its_package(orchard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package imports one of its modules, and then is refused: the module would be no name in the package."""
    monkeypatch.setattr("gc.freeze", lambda: None)
    mill = orchard / "orchard" / "mill"
    mill.mkdir()
    (mill / "__init__.py").write_text("from orchard.mill import wheel\nfrom orchard.trees.words import STOPS\n")
    (mill / "wheel.py").write_text("")
    every = mutants.rows(orchard, ("orchard",))
    for name in [name for name in sys.modules if name.partition(".")[0] == "orchard"]:
        del sys.modules[name]
    shared = mutants.SharedModules(every, orchard, ("orchard",))
    shared.share()
    assert "orchard.trees" in sys.modules
    assert not {"orchard.mill", "orchard.mill.wheel"} & sys.modules.keys()
    for row in every:
        shared.done(row)
    assert sys.modules["orchard.mill"].wheel is sys.modules["orchard.mill.wheel"]


def test_what_came_with_a_refused_module_is_there_once(orchard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a package that stays nor a cache knows another one than the list of modules: else tests would fail that
    miss no row."""
    monkeypatch.setattr("gc.freeze", lambda: None)
    trees = orchard / "orchard" / "trees"
    (trees / "cellar.py").write_text(
        "from importlib import import_module\nKEPT = []\n"
        "def keep():\n    KEPT.append(KEPT[0] if KEPT else import_module('orchard.trees.core'))\n")
    (trees / "apple.py").write_text("from orchard.trees import cellar\n")  # so that it is imported before the others
    (trees / "bark.py").write_text("from orchard.trees import cellar, core\ncellar.keep()\n"
                                   "from orchard.trees.words import STOPS\n")
    (trees / "bough.py").write_text("from orchard.trees import core\nfrom orchard.trees.cellar import keep\nkeep()\n")
    (trees / "core.py").write_text("def grow():\n    from orchard.trees import bark, bough\n")
    every = mutants.rows(orchard, ("orchard",))
    for name in [name for name in sys.modules if name.partition(".")[0] == "orchard"]:
        del sys.modules[name]
    mutants.SharedModules([row for row in every if row.table.name == "STOPS"], orchard, ("orchard",)).share()
    core = sys.modules["orchard.trees.core"]
    assert "orchard.trees.bark" not in sys.modules
    assert sys.modules["orchard.trees.bough"].core is core
    kept = sys.modules["orchard.trees.cellar"].KEPT
    assert kept == [core]


def test_what_is_left_out_is_still_there_and_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = dict(mutants.LEFT_OUT)
    monkeypatch.setattr(mutants, "LEFT_OUT", {})
    titles = {row.table.title for row in mutants.rows()}
    assert [pattern for pattern in left_out if not any(re.fullmatch(pattern, title) for title in titles)] == []
    assert all(left_out.values())
    assert len(left_out) <= 20


@each_row("count", range(1, 30))
@each_row("row", [0, 3, "a fault"])
def test_the_shares_of_a_sweep_are_all_its_cells_and_none_is_empty(count: int, row: int | str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        tried = []
        for number in range(1, scene_rows.SHARES + 1):
            patch.setattr(scene_rows, "SHARE", number)
            tried.append(scene_rows.share(range(count), row))
        assert set().union(*tried) == set(range(count))
        assert all(1 <= len(cells) <= -(-count // scene_rows.SHARES) for cells in tried)
        patch.setattr(scene_rows, "SHARE", None)
        assert scene_rows.share(range(count), row) == [*range(count)]


@each_row("asked, chosen", [("all", None), ("1", 1), ("8", 8)])
def test_a_share_can_be_asked_for(asked: str, chosen: int | None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWEEPS", asked)
        assert scene_rows.chosen_share() == chosen
        for wrong in ("0", "9", "some"):
            patch.setenv("SWEEPS", wrong)
            with pytest.raises(ValueError, match="all, or a number from 1 to 8"):
                scene_rows.chosen_share()
