"""What each entry imports, seen in a process of its own, and what import-linter cannot see inside a module.

The arrows between modules are contracts in pyproject.toml; start-up cost and purity are decided by what is imported.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loop_core.formats import FORMATS
from tests.scenes.rows import each_row

ROOT = Path(__file__).resolve().parent.parent
ENGINE = sorted((ROOT / "loop_core").rglob("*.py"))
HIDDEN_IMPORTS = tuple(ROOT / "loop_core" / name for name in (
    "__init__.py", "wire/__init__.py", "wire/format.py"))
"""Where names are imported when first used: the engine's public names, wire formats by their ids and their rarer
parts."""

FOREIGN_CODE = {
    ROOT / "loop_core" / "turn" / "tools.py": "BaseException",
    ROOT / "loop_core" / "client" / "threads.py": "BaseException",
    ROOT / "loop_core" / "client" / "transport.py": "Exception",
    ROOT / "loop_core" / "errors.py": "Exception",
}
"""The modules that may catch everything, once, around code that is not ours: a tool, a signer, a runner of tools, an
HTTP client. What it raises is unknown beforehand; the model or the operator must read it, and out of its thread it goes
to who waits. Every other failure that the engine meets is its own and has a name."""

NETWORK = {"httpx", "httpx2", "aiohttp", "requests", "socket", "ssl"}
SDKS = {"openai", "anthropic", "google.genai", "botocore", "boto3", "ollama", "opentelemetry"}
SCREENS = {"textual", "rich"}
SLOW = {"yaml", "pydantic", "asyncio"} | NETWORK | SDKS | SCREENS

ASK_WEATHER = {
    "model": "m",
    "messages": [{"role": "user", "content": "the weather in Oslo?"}],
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}],
}


def answer(arguments: str, reason: str) -> dict[str, object]:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"id": "r1", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def modules_after(code: str, *arguments: str) -> set[str]:
    """The names in `sys.modules` after `code` has run in a fresh interpreter."""
    report = f"import sys\n{code}\nimport json\nsys.stderr.write('MODULES' + json.dumps(sorted(sys.modules)))\n"
    done = subprocess.run([sys.executable, "-c", report, *arguments], capture_output=True, text=True, cwd=ROOT,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "MODULES" in done.stderr, done.stderr
    return set(json.loads(done.stderr.rpartition("MODULES")[2]))


COMMAND = """
from inspector.cli import main
try:
    main(sys.argv[1:], standalone_mode=False)
except SystemExit as end:
    assert not end.code, end.code
"""


def explain_modules(path: Path, *options: str) -> set[str]:
    return modules_after(COMMAND, "explain", str(path), *options)


@pytest.fixture
def whole_body(tmp_path: Path) -> Path:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(answer('{"city": "Oslo"}', "tool_calls")))
    return path


def pair(tmp_path: Path, arguments: str, reason: str) -> Path:
    path = tmp_path / "pair.json"
    path.write_text(json.dumps({"request": ASK_WEATHER, "response": answer(arguments, reason)}))
    return path


@pytest.mark.parametrize("code", [
    "import loop_core", "import loop_core.turn.loop, loop_core.turn.tools", "import inspector.cli",
])
def test_an_import_alone_loads_nothing_slow(code: str) -> None:
    assert modules_after(code) & (SLOW | {"jsonschema_rs"}) == set()


def test_the_door_and_the_driver_of_a_tab_load_no_server() -> None:
    assert modules_after("import inspector.web.browser") & (SLOW | {"textual_serve"}) == set()
    driver = modules_after("import inspector.web.tab_driver")
    assert "textual" in driver
    assert driver & {"aiohttp", "textual_serve", "jinja2"} == set()


def test_the_server_of_the_browser_loads_no_screen() -> None:
    loaded = modules_after("import inspector.commands.serve, inspector.web.app_server")
    assert "aiohttp" in loaded
    assert loaded & {"textual", "rich", "jinja2", "textual_serve.server"} == set()


def test_the_engine_does_not_load_the_app() -> None:
    loaded = modules_after("import loop_core, loop_core.turn.loop, loop_core.turn.tools")
    assert {name for name in loaded if name.split(".")[0] in ("inspector", "click", "platformdirs")} == set()


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_explaining_loads_no_screen_no_network_and_no_sdk(whole_body: Path, options: tuple[str, ...]) -> None:
    loaded = explain_modules(whole_body, *options)
    assert "loop_core.wire.openai_chat" in loaded, "the sample was not read"
    assert loaded & SLOW == set()
    others = {"pydantic_core", "sqlite3", *(f"inspector.sessions.importers.{name}" for name in ("cursor", "zeroclaw"))}
    assert loaded & others == set(), "30 ms for what no response body needs"


def test_a_routers_word_loads_no_format_behind_the_first_that_says_enough() -> None:
    looked = "from loop_core.wire.profiles import native_word\nassert native_word({!r}).stop is not None"
    packages = {row.package for row in FORMATS.values()}
    assert modules_after(looked.format("length")) & packages == {"loop_core.wire.openai_chat"}
    assert modules_after(looked.format("tool_calls")) & packages == packages, "a later table may say that it was cut"


def test_checking_loads_a_filter_statistics_and_xml_only_where_it_is_asked_for_them(whole_body: Path) -> None:
    rare = {"inspector.report.filters", "inspector.check.stats", "html"}
    assert modules_after(COMMAND, "check", str(whole_body)) & rare == set()
    asked = modules_after(COMMAND, "check", str(whole_body), "--filter", "turn:1", "--stats")
    assert {"inspector.report.filters", "inspector.check.stats"} <= asked
    assert "html" in modules_after(COMMAND, "check", str(whole_body), "--format", "junit")


def test_a_transcript_loads_the_wire_format_of_its_answers_alone(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(map(json.dumps, (
        {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:04:05Z", "cwd": "/x"},
        {"type": "message", "id": "a", "parentId": None, "timestamp": "2026-01-02T03:04:06Z",
         "message": {"role": "user", "content": "hi"}},
        {"type": "message", "id": "b", "parentId": "a", "timestamp": "2026-01-02T03:04:07Z",
         "message": {"role": "assistant", "content": [{"type": "text", "text": "hello"}], "api": "openai-completions",
                     "model": "m", "stopReason": "stop"}}))))
    loaded = explain_modules(path)
    assert "inspector.sessions.importers.pi" in loaded, "the sample was not read"
    assert {row.package for row in FORMATS.values()} & loaded == {"loop_core.wire.openai_chat"}


def test_pairs_load_the_wire_format_of_their_answers_alone(tmp_path: Path) -> None:
    path = pair(tmp_path, '{"city": "Oslo"}', "tool_calls")
    loaded = explain_modules(path)
    assert "inspector.sessions.importers.pairs" in loaded, "the sample was not read"
    assert {row.package for row in FORMATS.values()} & loaded == {"loop_core.wire.openai_chat"}
    path.write_text(json.dumps({"request": {"messages": [{"role": "user", "content": "hi"}]},
                                "response": answer("{}", "stop")}))
    loaded = explain_modules(path)
    assert "inspector.sessions.importers.hermes" in loaded, "a format that may also be a database looks at it"
    assert "sqlite3" not in loaded


def test_a_transcript_of_claude_code_loads_the_wire_format_of_its_answers_alone() -> None:
    loaded = explain_modules(next((ROOT / "sample_sessions").glob("18-*")))
    assert "inspector.sessions.importers.claude_code" in loaded, "the sample was not read"
    assert {row.package for row in FORMATS.values()} & loaded == {"loop_core.wire.anthropic_messages"}


def test_the_schema_validator_is_loaded_when_a_complete_call_meets_a_schema(tmp_path: Path) -> None:
    loaded = explain_modules(pair(tmp_path, '{"city": "Oslo"}', "tool_calls"))
    assert "jsonschema_rs" in loaded


def test_a_cut_call_does_not_load_the_schema_validator(tmp_path: Path) -> None:
    loaded = explain_modules(pair(tmp_path, '{"city": "Os', "length"))
    assert "jsonschema_rs" not in loaded


def test_a_call_without_a_schema_does_not_load_the_schema_validator(whole_body: Path) -> None:
    assert "jsonschema_rs" not in explain_modules(whole_body)


# -- inside a module --------------------------------------------------------------------------------------------------


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@each_row("path", ENGINE)
def test_the_engine_opens_no_file_and_catches_nothing_broadly(path: Path) -> None:
    forbidden = {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}
    broad = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in forbidden, f"line {node.lineno}: {node.func.id}()"
        if isinstance(node, ast.ExceptHandler):
            caught = {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)} if node.type else {"all"}
            broad += [f"line {node.lineno}: {name}" for name in sorted(caught & {"all", "Exception", "BaseException"})]
    if path in FOREIGN_CODE:
        (first, *broad) = broad
        assert first.endswith(f": {FOREIGN_CODE[path]}")
    assert not broad


@each_row("path", ENGINE)
def test_the_engine_takes_only_pure_parts_of_urllib_and_importlib(path: Path) -> None:
    """import-linter sees `urllib` and `importlib` as wholes."""
    for node in ast.walk(tree_of(path)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            assert not name.startswith("urllib") or name == "urllib.parse", f"line {node.lineno}: {name}"
            if name.startswith("importlib"):
                assert path in HIDDEN_IMPORTS, f"line {node.lineno}: an import that import-linter cannot see"


# -- wire formats ----------------------------------------------------------------------------------------------------

LOG = "the API that the file's own fields imply"
NAMES_A_FORMAT: dict[str, str] = {
    "loop_core/formats.py": "the registry",
    "loop_core/wire/servers.py": "a server is described by the formats that it speaks",
    "loop_core/turn/presets.py": "what other loops believe of the words of each API",
    "loop_core/client/outgoing.py": "messages are given as those of Chat Completions",
    "inspector/live/inputs.py": "messages are given as those of Chat Completions",
    "inspector/check/finders.py": "the caps that libraries set by default in one API",
    **{f"inspector/sessions/{name}.py": LOG for name in (
        "reasons", "transcripts/provider_answers", "importers/codex", "importers/crush", "importers/roo",
        "importers/kimi", "importers/amp", "importers/pi", "importers/litellm", "importers/continue_dev",
        "importers/opencode", "transcripts/ending_rules", "importers/qwen",
        "importers/claude_code", "importers/claude_rows", "importers/gemini_cli", "importers/gemini_stream",
        "importers/antigravity", "importers/llm_logs", "importers/langsmith", "importers/pydantic_ai",
        "importers/adk", "importers/openai_agents", "importers/har", "importers/promptfoo",
        "importers/ag2", "importers/mastra", "importers/llama_index", "importers/claude_ai", "importers/ai_studio",
        "importers/trae", "importers/fast_agent")},
}
"""Module -> why it may name a wire format; every other fact of a format stands in its package."""


def test_no_module_names_a_wire_format_without_a_reason() -> None:
    packages = {row.package for row in FORMATS.values()}
    own = tuple(f"{package.replace('.', '/')}{end}" for package in packages for end in ("/", ".py"))
    named: set[str] = set()
    for path in (*(ROOT / "loop_core").rglob("*.py"), *(ROOT / "inspector").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(own):
            continue
        text = path.read_text("utf-8")
        if not any(name in text for name in (*FORMATS, *packages)):
            continue
        for node in ast.walk(ast.parse(text)):
            constant = isinstance(node, ast.Constant) and node.value in FORMATS
            imported = isinstance(node, ast.ImportFrom) and any(
                f"{node.module}.".startswith(f"{package}.") for package in packages)
            if constant or imported:
                named.add(place)
    assert named == set(NAMES_A_FORMAT)


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="this is no checkout of git")
def test_the_top_level_holds_no_file_that_a_trial_has_left_behind() -> None:
    """Exports are written where one stands: two reports of a trial were once committed."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    top = {path.split("/")[0] for path in listed.splitlines()}
    assert {name for name in top if not name.startswith(".")} == {
        "CHANGELOG.md", "LICENSE", "README.md", "action.yml", "docs", "inspector", "loop_core", "pyproject.toml",
        "sample_sessions", "tests"}
