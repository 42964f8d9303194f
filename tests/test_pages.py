"""The handwritten pages: what they name exists, and the glossary is short, ordered and in use."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

import click
import pytest

from inspector.cli import main
from inspector.sessions.importers import IMPORTERS
from loop_core.turn.state import RequestPlace

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
NAMING = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
"""Pages whose names of modules and files must exist: all."""
MOST = 25
TERM = re.compile(r"^- \*\*(.+?)\*\*: (.+?)(?=\n- |\n\n|\Z)", re.DOTALL | re.MULTILINE)


@cache
def terms() -> list[tuple[str, str]]:
    return [(term, " ".join(text.split())) for term, text in TERM.findall(GLOSSARY.read_text("utf-8"))]


@cache
def elsewhere() -> str:
    """The other documents and the code, as one text."""
    pages = [ROOT / "README.md", *(path for path in sorted(DOCS.glob("*.md")) if path != GLOSSARY)]
    sources = [path for package in ("loop_core", "inspector") for path in sorted((ROOT / package).rglob("*.py"))]
    return "\n".join(path.read_text("utf-8") for path in (*pages, *sources)).lower()


def test_the_glossary_is_short_ordered_and_says_everything_once() -> None:
    words = [term for term, _ in terms()]
    assert 0 < len(words) <= MOST
    assert words == sorted(set(words))
    assert GLOSSARY.read_text("utf-8").count("**") == 2 * len(words), "a bold word that is no entry"


@pytest.mark.parametrize(("term", "text"), terms(), ids=[term for term, _ in terms()])
def test_a_term_has_two_sentences_at_most_and_is_in_use(term: str, text: str) -> None:
    sentences = re.split(r"(?<=[.)])\s+(?=[A-Z`])", text)
    assert len(sentences) <= 2
    assert text.endswith(".")
    assert re.search(rf"\b{re.escape(term)}\b", elsewhere()), "no document and no code uses it"


def test_the_install_page_names_every_schema() -> None:
    """Its promise is about their numbers, so each stands there with the number that is in force."""
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "inspector").rglob("*.py"))
    printed = set(re.findall(r'^(?:[A-Z]+_)?SCHEMA = "(loop-inspector/\w+/\d+)"', code, re.MULTILINE))
    text = (DOCS / "install.md").read_text("utf-8")
    assert printed
    assert set(re.findall(r"`(loop-inspector/\w+/\d+)`", text)) == printed


def test_the_readme_links_the_glossary() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text("utf-8")


def test_the_architecture_page_has_a_row_for_every_room() -> None:
    rooms = {f"{package}/{path.name}" for package in ("loop_core", "inspector") for path in (ROOT / package).iterdir()
             if (path / "__init__.py").is_file()}
    rows = re.findall(r"^\| `(\w+/\w+)` \|", (DOCS / "design.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(rooms)


# -- names -----------------------------------------------------------------------------------------------------------


def exists(dotted: str) -> bool:
    """Whether this is a module, or an attribute below one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            if not hasattr(value, name):
                return False
            value = getattr(value, name)
        return True
    return False


@pytest.mark.parametrize("page", NAMING, ids=lambda page: page.name)
def test_every_module_and_name_of_ours_exists(page: Path) -> None:
    named = re.findall(r"`((?:loop_core|inspector)(?:\.\w+)+)`", page.read_text("utf-8"))
    assert [dotted for dotted in named if not exists(dotted)] == []


@pytest.mark.parametrize("page", NAMING, ids=lambda page: page.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"`((?:loop_core|inspector|tests|docs|sample_sessions)/[\w./*-]*)`", page.read_text("utf-8"))
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (DOCS / "extending.md").read_text("utf-8"))
    assert named
    for path, name in named:
        source = (ROOT / path).read_text("utf-8")
        assert re.search(rf"^(?:async )?def {name}\(", source, re.MULTILINE), f"{path}: {name}"


@pytest.mark.parametrize("page", NAMING, ids=lambda page: page.name)
def test_every_command_and_option_that_is_named_exists(page: Path) -> None:
    text = page.read_text("utf-8").replace("\\\n", "")
    unknown = []
    for name, rest in re.findall(r"[`$(] ?inspector ([a-z]+)\b(?!:)([^`\n#|]*)", text):
        command = main.get_command(click.Context(main), name)
        assert command is not None, f"inspector {name}"
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        unknown += [f"{name} {option}" for option in re.findall(r" (--[a-z-]+)", rest) if option not in known]
    assert unknown == []


def test_the_page_on_transcripts_names_every_agent_with_a_folder() -> None:
    text = (DOCS / "transcripts.md").read_text("utf-8")
    for name, row in IMPORTERS.items():
        for folder in row.folders:
            for word in (name, folder.variable):
                assert not word or re.search(rf"`{word}`", text), f"{word} is not on the page"


def test_the_page_on_session_files_names_every_place_of_a_request() -> None:
    text = (DOCS / "session-format.md").read_text("utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| `place`, `ordinal` |"))
    assert [place for place in RequestPlace if f"`{place}`" not in row] == []


def test_every_picture_is_small_and_on_a_page() -> None:
    pages = {path: path.read_text("utf-8") for path in NAMING}
    named = {(path.parent / name).resolve() for path, text in pages.items()
             for name in re.findall(r"(?:\]\(|src(?:set)?=\")([\w/.-]+\.(?:png|webp))", text)}
    pictures = {path: path.stat().st_size for path in (DOCS / "images").iterdir()}
    assert named == set(pictures)
    most = {".png": 100_000, ".webp": 250_000}
    assert [path.name for path, size in pictures.items() if size > most[path.suffix]] == []
