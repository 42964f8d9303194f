"""The documents: generated parts are fresh, links lead somewhere, examples import what exists, promises match CI."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.scenes.rows import each_row

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md")), ROOT / "sample_sessions" / "README.md"]
ASKED_FOR = ("stop-reasons.md", "continuation.md", "tool-calls.md")
"""The documents that the stop-reason RFI asks for: mapping; policy, limits and state machine; partial tool calls."""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("generate")
    finally:
        sys.path.remove(str(DOCS))


# -- generated parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [page.name for page in PAGES if "<!-- generated: " in page.read_text("utf-8")])
def test_the_generated_parts_are_fresh(generate: ModuleType, name: str) -> None:
    text = (DOCS / name).read_text("utf-8")
    assert generate.rendered(text) == text, f"docs/{name} is stale; run python docs/generate.py"


def test_every_generated_part_stands_in_exactly_one_document(generate: ModuleType) -> None:
    found = [part for path in generate.documents() for part in generate.names_in(path.read_text("utf-8"))]
    assert sorted(found) == sorted(generate.PARTS)
    assert {path.name for path in generate.documents()} >= set(ASKED_FOR)


def test_a_changed_row_makes_a_document_stale(generate: ModuleType) -> None:
    text = (DOCS / "continuation.md").read_text("utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| EvaluateStop | `MaxTokens`"))
    changed = text.replace(row, row.replace("ContinuePending", "Complete"))
    assert changed != text
    assert generate.rendered(changed) == text


def test_the_diagram_draws_every_transition(generate: ModuleType) -> None:
    from loop_core.turn.machine import TRANSITIONS

    drawn = {
        (state, signal, to)
        for state, to, signals in re.findall(r"^ +(\w+) --> (\w+): (.+)$", generate.PARTS["machine"](), re.MULTILINE)
        for signal in signals.split(" / ")
    }
    assert drawn == {(state.value, signal.value, row.to.value) for (state, signal), row in TRANSITIONS.items()}


# -- links -----------------------------------------------------------------------------------------------------------


LINK = re.compile(
    r"""!?\[[^\]]*\]\(([^)\s]+)(?:\s+"[^"]*")?\)   # Markdown
      | <(?:img|a|source)\b[^>]*?\b(?:src|href|srcset)="([^"]+)\"""",
    re.VERBOSE,
)
FENCE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def links_of(path: Path) -> list[str]:
    return [one or other for one, other in LINK.findall(FENCE.sub("", path.read_text("utf-8")))]


def anchors_of(path: Path) -> set[str]:
    """The anchors that a Markdown page gets from its headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        found.add(plain.replace(" ", "-"))
    return found


@each_row("page", PAGES)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in links_of(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: no such file"
        assert target.is_relative_to(ROOT), f"{link}: leaves the repository"
        if anchor:
            assert anchor in anchors_of(target), f"{link}: no such heading"


# -- examples and promises -------------------------------------------------------------------------------------------


def imports_in(page: Path) -> list[tuple[str, str]]:
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [
        (node.module or "", alias.name)
        for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


EXTRAS = frozenset({"dask", "distributed", "fsspec"})


@each_row("page", PAGES)
def test_examples_parse_and_import_what_exists(page: Path) -> None:
    for module, name in imports_in(page):
        if importlib.util.find_spec(module.split(".")[0]) is None and module.split(".")[0] in EXTRAS:
            continue  # an extra that is not installed here; CI installs it
        assert hasattr(importlib.import_module(module), name), f"from {module} import {name}"


def test_the_example_on_continuation_names_what_a_run_gives() -> None:
    from loop_core.turn.limits import Limits
    from loop_core.turn.loop import Plan, run
    from loop_core.values import Request
    from tests.scenes.turns import ScriptedSource

    plan = Plan(limits=Limits(continuation_max_attempts=5), provider="my-gateway")
    turn = run("turn-1", Request("openai_chat"), ScriptedSource(()), plan).steps[-1].turn
    assert (turn.outcome, turn.terminal, turn.joined_answer().text) == ("Unrecorded", "unrecorded", "")


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]  # type: ignore[no-any-return]


def names(requirements: object) -> list[str]:
    assert isinstance(requirements, list)
    return [re.split(r"[<>=!~\[ ]", text)[0] for text in requirements]


def test_every_dependency_has_its_reason() -> None:
    told = (DOCS / "design.md").read_text("utf-8")
    for name in names(project()["dependencies"]):
        assert re.search(rf"^\| {re.escape(name)} \| \S", told, re.MULTILINE), f"{name}: no line in docs/design.md"
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    for extra, requirements in extras.items():
        assert f"`{extra}`" in told, f"the extra {extra} has no reason in docs/design.md"
        for name in names(requirements):
            assert name in told, f"{name}: no word in docs/design.md"


def test_ci_runs_the_test_command_of_the_readme() -> None:
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    commands = [line for line in ci.splitlines() if line.startswith("python -m pytest")]
    assert len(commands) == 1
    assert commands[0] in (ROOT / "README.md").read_text("utf-8")


def test_the_changelog_has_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "## [Unreleased]" in text
    assert f"## [{project()['version']}]" in text
