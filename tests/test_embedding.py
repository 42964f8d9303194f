"""docs/embedding.md: every example is run, also where the engine is installed alone, and type-checked."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from inspector.provider import Provider, serving

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "embedding.md").read_text("utf-8")
EXAMPLES = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE,
                      re.DOTALL | re.MULTILINE)
"""Heading, program and what it prints."""
NEEDS = ("httpx", "pydantic", "jsonschema-rs")
PORT = "http://127.0.0.1:8080"
IMPORT_ALL = """
import importlib, pkgutil, loop_core
for module in pkgutil.walk_packages(loop_core.__path__, "loop_core."):
    importlib.import_module(module.name)
for name in loop_core.__all__:
    getattr(loop_core, name)
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with serving("cut-twice", "call", "text") as running:
        yield running


def programs(url: str) -> list[tuple[str, str, str]]:
    return [(name, program.replace(PORT, url), printed) for name, program, printed in EXAMPLES]


def test_there_are_seven_of_them() -> None:
    assert [name for name, _, _ in EXAMPLES] == [
        "Read an answer", "Ask", "Stream", "Tools", "Store a conversation", "A loop of your own",
        "A transport of your own"]
    assert PAGE.count("```python") == len(EXAMPLES)


@pytest.mark.parametrize("name", [name for name, _, _ in EXAMPLES])
def test_an_example_prints_what_the_page_says(provider: Provider, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ((program, printed),) = [(each, said) for heading, each, said in programs(provider.url) if heading == name]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, f"docs/embedding.md: {name}", "exec"), {"__name__": "example"})
    assert out.getvalue() == printed


def test_asking_takes_five_lines() -> None:
    program = next(program for name, program, _ in EXAMPLES if name == "Ask")
    assert len([line for line in program.splitlines() if line.strip()]) <= 5


def test_the_examples_are_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for number, (_, program, _) in enumerate(EXAMPLES):
        (tmp_path / f"example_{number}.py").write_text(program, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(tmp_path)],
        capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# -- alone -----------------------------------------------------------------------------------------------------------


def requirements(names: tuple[str, ...]) -> set[str]:
    """These distributions and all that they require, as they are installed here."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # for another Python or system
        found.add(name)
        left += [re.split(r"[^\w.-]", each)[0] for each in requires if "extra ==" not in each]
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the engine, what it needs, and nothing else that was ever installed."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "loop_core").symlink_to(ROOT / "loop_core")
    for name in requirements(NEEDS):
        files = metadata.files(name) or []
        for top in {path.parts[0] for path in files if ".." not in path.parts and path.parts[0] != "__pycache__"}:
            (folder / top).symlink_to(Path(str(metadata.distribution(name).locate_file(top))))
    return folder


def run_alone(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    begin = f"import sys; sys.path.append({str(folder)!r})\n"
    return subprocess.run([sys.executable, "-I", "-S", "-c", begin + program], capture_output=True, text=True, cwd=ROOT,
                          check=False, timeout=120)


def test_the_engine_runs_where_only_its_needs_are_installed(alone: Path, provider: Provider) -> None:
    names = ("inspector", "textual", "click", "aiohttp", "yaml", "re2", "platformdirs")
    done = run_alone(alone, f"import importlib.util as i; print([n for n in {names} if i.find_spec(n) is not None])")
    assert (done.stdout, done.stderr) == ("[]\n", ""), "what is there of all that is not needed"
    wanted = programs(provider.url)
    done = run_alone(alone, IMPORT_ALL + f"for program in {[program for _, program, _ in wanted]!r}:\n"
                     "    exec(program, {'__name__': 'example'})\n    print(end='\\0')")
    assert (done.returncode, done.stderr) == (0, "")
    assert dict(zip((name for name, _, _ in wanted), done.stdout.split("\0"), strict=False)) == {
        name: printed for name, _, printed in wanted}


def test_the_page_installs_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {re.split(r"[<>=]", each)[0]: each for each in project["dependencies"]}
    (line,) = re.findall(r"^\$ pip install ('.*)$", PAGE, re.MULTILINE)
    assert re.findall(r"'([^']+)'", line) == [named[name] for name in NEEDS]


def test_every_public_name_stands_on_the_page() -> None:
    import loop_core

    table = PAGE.partition("## All names")[2]
    assert {name for name in loop_core.__all__ if f"`{name}`" not in table} == set()
