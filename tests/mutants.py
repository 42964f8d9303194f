"""Deletes every row of every table, one at a time, and asks for a behavioural test that fails.

    python tests/mutants.py [-v] [--list] [--jobs N] [--times REPORT] [--part K/N] [WORD ...]
                                                                    only rows whose name holds one of the words

A table is every tuple, list, set or mapping that a module assigns to a public name in capitals, and what `PARTS` names;
`LEFT_OUT` says which are not tried, and why. Each row is deleted in a process of its own, as soon as its table is
assigned, so that whatever is derived from the table is derived without it; then test files run until the first
failure: those that are likely by their names, rooms, imports and words, and by what they missed before. A likely file
runs first unless the tests of another take much less time. The tests that missed other rows of the table, or of one of
that name, run before all others; then, of each file, those that have a word of the row which few of its tests have,
then the quick ones, then the slow ones. How long each test takes stands in the JUnit report of a run of the whole
suite; without one, each file that misses a row runs once with no row deleted. A test that names the table, itself or
through what it calls, does not count: a copy of a table proves nothing. A row without which its module cannot be loaded
is missed by every test.
Recorded traffic is hidden, since these proofs must hold without it. Needs `fork`.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import gc
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from _pytest.config import _prepareconfig

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 240
"""A row whose tests take longer is reported: a mutant must not hang the build."""
SLOW = 0.05
"""Seconds of a slow test."""
START = 0.15
"""Seconds that pytest takes for a file before the first test of it runs."""
FEW = 6
"""A word that more tests of a file have says nothing of one of them."""
WORD = re.compile(r"\w{3,}")
"""A word of the name of a row, or of a test, of any alphabet."""
Step = int | str
"""A position in a table, or the field of a row that holds a table of its own."""


PACKAGES = ("loop_core", "inspector")
CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*|_HOMES")
"""The name of a table. One that begins with an underscore is a part of its module's code, or of a table with a name,
except the names that a package offers, which would be offered too without it."""
PARTS = frozenset({"columns", "words", "lacks", "unlisted"})
"""The fields of a record, or of a row, that are tables of their own although they have no name in capitals."""
FIELD_TESTS = {
    "late_system": "tests/client/test_outgoing.py", "least_cap": "tests/turn/test_limits.py",
    "forces_tool": "tests/live/test_read_again.py",
    "names_stop_strings": "tests/judge/test_endings.py", "servers": "tests/wire/test_profiles.py",
    "prefills": "tests/client/test_outgoing.py", "chained": "tests/client/test_outgoing.py",
    "container": "tests/client/test_outgoing.py", "body_marks": "tests/client/test_outgoing.py",
    "reduced": "tests/client/test_outgoing.py",
    "stream_type": "tests/client/test_exchange.py", "region": "tests/live/test_aws.py",
    "joints": "tests/wire/test_provenance.py", "word_paths": "tests/sessions/test_inspect_ai.py",
    "no_tools": "tests/live/test_scripted.py", "wrapped": "tests/provider/test_sdk_types.py",
    "history": "tests/live/test_run.py", "rules": "tests/report/test_document.py",
    "json_shape": "tests/provider/test_checks.py", "follows": "tests/provider/test_serving.py",
    "played_in": "tests/provider/test_dialect_conformance.py",
    **dict.fromkeys(("count", "near", "client_header", "request_id", "dated"), "tests/provider/test_endpoints.py"),
}
"""The fields of a wire format, of its row in the registry and of how it is served that need not be given. Each is read
in a room of its own, which no rule knows, so that its tests are named here."""
OF_NAME = {
    "_HOMES": ("tests/test_library.py",), "FAILURES": ("tests/client/test_transport.py",),
    "error_advice.FAILURES": ("tests/report/test_advice.py",),
    **dict.fromkeys(("proxy.FAILURES", "HOP_BY_HOP", "HANDLING", "REPLACED", "NO_PROXY"),
                    ("tests/live/test_recording_proxy.py",)),
    "evidence_places.FACTS": ("tests/report/test_document.py",), "codex_items.CUTS": ("tests/sessions/test_codex.py",),
    "REFERENCES": ("tests/judge/test_schema_cost.py",), "har.ENDS": ("tests/sessions/test_socket.py",),
    "provider_answers.CALLS": ("tests/sessions/test_inspect_ai.py",), "ORIGINS": ("tests/export/test_export_runs.py",),
    "DECISIONS": ("tests/whatif/test_policies.py",),
    "KNOWN_GRAINS": ("tests/whatif/test_edge.py",), "ESSENTIAL": ("tests/report/test_turn_rows.py",),
    "INSTRUMENTS": ("tests/export/test_otel_sdk.py", "tests/export/test_spans.py"),
    "request.CHOICES": ("tests/wire/test_openai_chat.py",),
    **dict.fromkeys(("member_values.CAPS", "PART_KINDS", "TYPELESS_PARTS"), ("tests/sessions/test_otlp.py",)),
    **dict.fromkeys(("EDITORS", "file_format.FOLDERS"), ("tests/sessions/test_editor_folders.py",)),
    "file_format.DATABASE_NAMES": ("tests/sessions/test_cursor_chats.py",),
    **dict.fromkeys(("kiro.PLACEHOLDERS", "kiro.OWN_MESSAGES", "kiro.TURN_ENDS", "kiro.ERRORS", "kiro.NO_EXCHANGE",
                     "kiro.FIELDS", "kiro_conversations.TABLES", "kiro_conversations.FIELDS"),
                    ("tests/sessions/test_kiro.py",)),
    **dict.fromkeys(("grok.FIELDS", "grok.TURN_ENDS", "grok.NO_EXCHANGE", "grok.COUNTS"),
                    ("tests/sessions/test_grok.py",)),
    **dict.fromkeys(("cursor_chats.FIELDS", "cursor_chats.ENDS", "cursor_chats.DONE"),
                    ("tests/sessions/test_cursor_chats.py",)),
    **dict.fromkeys(("TASKS", "BEHIND"), ("tests/sessions/test_stopped.py",)),
    "REFUSALS": ("tests/sessions/test_stopped.py", "tests/sessions/test_chat_lines.py",
                 "tests/sessions/test_antigravity.py"),
    "GUARDED_EXITS": ("tests/turn/test_events.py",), "costs.REFUSALS": ("tests/turn/test_machine.py",),
    "SCENARIOS": ("tests/provider/test_dialect_expected.py", "tests/provider/test_dialect_fidelity.py"),
    **dict.fromkeys(("CONTEXTS", "VARIABLES", "credential_names.COMMANDS"), ("tests/sessions/test_redact.py",)),
    "PAUSES": ("tests/report/test_verdict_words.py",), "OTHER_WORDS": ("tests/report/test_verdict.py",),
    "WHOLE_FILES": ("tests/sessions/test_kimi.py",),
    "RESULT_FIELDS": ("tests/wire/test_asking.py",), "WRAPPINGS": ("tests/test_reader.py",),
    "SYSTEMS": ("tests/sessions/test_otlp.py", "tests/sessions/test_otlp_logs.py"),
    "values.FINISHED": ("tests/wire/test_finished.py",),
    **dict.fromkeys(("records.STARTED", "EVENT_MEMBERS", "stored_bodies.KINDS", "TIMES", "HOLDERS"),
                    ("tests/sessions/test_open.py",)),
    "heat.MEASURES": ("tests/whatif/test_tune_report.py",), "FOLDERS_BESIDE": ("tests/report/test_turn_index.py",),
    "MAY_RUN": ("tests/turn/test_presets.py",), "mini_swe_agent.FIELDS": ("tests/sessions/test_trajectories.py",),
    "cursor.FIELDS": ("tests/sessions/test_droid_cursor.py",),
    "continue_dev.FIELDS": ("tests/sessions/test_continue.py",),
    "opencode_records.STOPS": ("tests/sessions/test_opencode.py",),
    **dict.fromkeys(("amp.STOPS", "hermes.STOPS", "hermes.OWN", "crush.STOPS", "crush.FIELDS", "goose.CALLS"),
                    ("tests/sessions/test_chats.py",)),
    **dict.fromkeys(("COMPLETE_MEMBERS", "CONDITIONS", "COMPLETIONS_CONDITIONS"), ("tests/provider/test_checks.py",)),
    **dict.fromkeys(("READS", "STREAM_READS"), ("tests/wire/test_provenance.py",)),
    "LOSES": ("tests/wire/test_conformance.py",), "KNOWN_CAPS": ("tests/sessions/test_claude_code.py",),
    "FIELDS": ("tests/sessions/test_odd_members.py", "tests/sessions/test_seed_agents.py"),
    "NAMES": ("tests/wire/test_failures.py", "tests/whatif/test_axes.py"),
    **dict.fromkeys(("ASKING_LOSES", "PROMPT_LOSES"), ("tests/wire/test_asking.py",)),
    "OLDER_NAMES": ("tests/whatif/test_axes.py",),
    "COPYING": ("tests/sessions/test_qwen.py", "tests/sessions/test_roo.py"),
    "HOLDS": ("tests/export/test_export.py",), "OPENAI_CODES": ("tests/provider/test_serving.py",),
    "TOOL_CHOICES": ("tests/wire/test_asking.py",), "TOOL_WORDS": ("tests/wire/test_openai_chat.py",),
    "WORDLESS": ("tests/judge/test_classify.py",),
    "PLACEHOLDERS": ("tests/sessions/test_roo.py", "tests/sessions/test_seed_agents.py", "tests/sessions/test_zed.py",
                     "tests/sessions/test_chat_lines.py"),
    "wordings.ERRORS": ("tests/report/test_findings.py", "tests/sessions/test_otlp_recorders.py"),
    "CALLS": ("tests/sessions/test_droid_cursor.py", "tests/provider/test_checks.py"),
    "RESULTS": ("tests/sessions/test_droid_cursor.py",),
    **dict.fromkeys(("ALIASES", "FLAGS", "filter_terms.NUMBERS"),
                    ("tests/report/test_filters.py", "tests/report/test_turn_rows.py")),
    "policies_lines.ROWS": ("tests/whatif/test_policies.py",),
    "NATIVE": ("tests/wire/test_gemini_generate.py",), "calls.HOLDS": ("tests/report/test_calls.py",),
    "calls.SAYS": ("tests/report/test_calls.py", "tests/whatif/test_policies.py"),
    "HOW_SENT": ("tests/live/test_driver.py", "tests/tui/test_live.py"),
    "REQUEST_WORDS": ("tests/live/test_driver.py",),
    "SCHEMES": ("tests/web/test_app_server.py",), "STORES": ("tests/sessions/test_span_rows.py",),
    "NUMBER_SIGNS": ("tests/commands/test_ci_log.py", "tests/check/test_check.py"),
    **dict.fromkeys(("browser.HEADERS", "browser.FILES"), ("tests/web/test_front.py",)),
    "NO_ROOM_ERRORS": ("tests/web/test_trouble.py",), "SERVER_FIELDS": ("tests/wire/test_conformance.py",),
    "inputs.VARIABLES": ("tests/live/test_run.py",),
    "CALLING": ("tests/sessions/test_inspect_ai.py",), "METRICS": ("tests/provider/test_sdk_types.py",),
    "CHOICES": ("tests/wire/test_asking.py",), "OVER": ("tests/sessions/test_roo.py",),
    **dict.fromkeys(("MEMBERS", "COMPLETIONS_MEMBERS", "GENERATE_MEMBERS", "INTERACTIONS_MEMBERS"),
                    ("tests/provider/test_checks.py",)),
    **dict.fromkeys(("SAYS", "COMPLETE_SAYS", "COMPLETIONS_SAYS", "GENERATE_SAYS", "INTERACTIONS_SAYS"),
                    ("tests/provider/test_dialect_expected.py",)),
    **dict.fromkeys(("ENDS", "COMPLETE_ENDS", "COMPLETIONS_ENDS", "GENERATE_ENDS", "CANNOT", "COMPLETE_CANNOT",
                     "COMPLETIONS_CANNOT", "GENERATE_CANNOT", "INTERACTIONS_CANNOT"),
                    ("tests/provider/test_faults.py",)),
    **dict.fromkeys(("STREAM_ONLY", "WHOLE_ONLY"), ("tests/provider/test_reply.py",)),
    **dict.fromkeys(("NOVA_MEMBERS", "LLAMA_MEMBERS", "MISTRAL_MEMBERS", "CHAT_MEMBERS"),
                    ("tests/provider/test_makers.py",)),
    **dict.fromkeys(("PEER_STOP", "PEER_CALL", "PEER_LENGTH", "PEER_FILTER", "PEER_FAILED", "PEER_WORDS",
                     "PEERS"),
                    ("tests/provider/test_dialect_expected.py",)),
}
"""Test files of all tables of one name. A name that tables of other meanings have too stands behind its module's. A
file with the name of the module or package, such as `test_pi.py`, need not be listed."""
RECORDS = re.compile(r"wire\..*\.(FORMAT|([A-Z]+_)?SERVING)|formats\.FORMATS\.\d+")
"""The records whose optional fields are rows."""
FILES = 12
"""Of so many test files the slow tests are tried for a row, the likely ones first."""
NEWEST = 2
"""So many tests that missed other rows of a table, or of one of that name, run before all others."""
MORE_FILES = 4 * FILES
"""Of so many the others are tried: which files are likely depends on what other rows were missed by before."""
LATER = "not each of its rows has been seen to be missed"
BY_NAME = "tried where a word names it, as `mutants.py serving` does: with all of these the check takes 15 minutes"
LEFT_OUT: dict[str, str] = {
    r"inspector\.tui\.(?!command_line\.(?!ROW_FINDERS)).*": "screens: a test of one presses keys for seconds",
    r"inspector\.report\.lines\.((?!body_slices\.ROLES|calls\.).*|calls\.RESULT_OF)":
        "how a line looks: pictures of the screens hold it",
    r"inspector\.(cli|config|commands\.(?!sessions\.)).*": "commands and settings: a test of one starts the program",
    r"wire\.profiles\..*": "made of the rows of `SERVERS`, which are tried",
    r"wire\.(bedrock_invoke|openai_completions)\.STREAM_READS": "made of the rows of other formats, which are tried",
    r"wire\.(ollama|openai).*\.PATHS": "an address tells a format only where its body does not",
    r"inspector\.live\.(growing_views|stepper)\..*": LATER,
    r"inspector\.provider\.dialects\.DIALECTS(\..*)?": "made of the formats and of `OTHERS`, which are tried",
    r"inspector\.provider\.scenarios\.(COMPLETE|TOOLS)": LATER,
    r"inspector\.report\.(judged_turn\..*|facts\.NEXT_ACTS)": LATER,
    r"inspector\.sessions\.credentials\.FORMS": "the examples that tests plant are made of its rows",
    r"inspector\.replay\.((simulate|tokens)\..*|case\.TURN_PLACES)": LATER,
    r"wire\..*\bserving\.((MEMBER|SETTING)_NAMES|(.*_)?ERRORS|ROLES|OTHERS|ELSEWHERE|INCLUDES|SAMPLING|FORMATS"
    r"|ONLY_TEXT|PEER_.*|(NOVA|LLAMA|MISTRAL|CHAT)_MEMBERS)": BY_NAME,
    r".*\.((ASKING_|PROMPT_)?LOSES|STREAM_READS|SNAKE|SIDE_FIELDS)": BY_NAME,
    r"inspector\.sessions\.importers\.(IMPORTERS|(pairs|copilot|langfuse|kimi_cli)\.(?!CAPS).*|.*\.NO_EXCHANGE"
    r"|(codex|qwen)\.FIELDS|inspect_ai\.EVENT_MEMBERS|otlp_files\.NAMES|span_names\.FLAT_INPUTS"
    r"|botnexus\.COLUMNS)": BY_NAME,
    r"inspector\.provider\.((app|frames|reading|dialect_lines|checks|dialect_rows)\..*|dialects\.(OTHERS|PEERS|PEER_VERSIONS)"
    r"(\..*)?)": BY_NAME,
}
"""The tables that are not tried: a pattern of their titles, and the reason."""
ASKED_BY_NAME = frozenset({"inspector.check.finders.DEFAULT_CAPS", "inspector.check.report_forms.FORMS",
                           "inspector.live.proxy.HANDLING"})
"""Tables of which tests ask for a row by its name and then look at what it does: these are no copies."""


@dataclass(frozen=True)
class Table:
    """A table: the module that assigns it, its name there, and where it stands in the value of that name."""

    module: str
    name: str
    within: tuple[Step, ...] = ()

    @property
    def title(self) -> str:
        return ".".join([self.module.removeprefix("loop_core."), self.name, *(str(step) for step in self.within)])


@dataclass(frozen=True)
class Row:
    table: Table
    position: int
    label: str
    tests: str = ""
    """The test file of the field of a record; for other rows it is found."""
    words: frozenset[str] = frozenset()
    """The words of the row and of what it maps to."""

    @property
    def title(self) -> str:
        return f"{self.table.title}[{self.label}]"


# -- which rows there are (in a process of its own: nothing here may be imported before it is mutated) ----------------


def rows(root: Path = ROOT, packages: Sequence[str] = PACKAGES, by_name: bool = False) -> list[Row]:
    """Every row of every table, each table once: under its own name, else where a record or a row holds it.

    `by_name`: also those that are tried only by name.
    """
    left_out = [pattern for pattern, why in LEFT_OUT.items() if not (by_name and why == BY_NAME)]
    constants = [*assignments(root, packages)]
    named = [(table, value) for table, value in constants if is_table(value)]
    records = [(table, value) for table, value in constants if is_record(value)]
    held = [each for table, value in named for each in inside(table, value)]
    within = [each for table, value in (*records, *held) for each in parts(table, value)]
    found: dict[int, tuple[Table, Any]] = {}
    for table, value in (*named, *within):
        if not any(re.fullmatch(pattern, table.title) for pattern in left_out):
            found.setdefault(id(value), (table, value))
    every = [Row(table, at, label, words=words_of(f"{label} {_at(value, at)!r}")) for table, value in found.values()
             for at, label in enumerate(map(_label, members(value)))]
    return every + [Row(table, at, name, FIELD_TESTS[name]) for table, value in (*records, *held)
                    if RECORDS.fullmatch(table.title) for at, name in enumerate(optional(value)) if name in FIELD_TESTS]


def modules(root: Path, packages: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """The modules of the packages, by name."""
    for path in sorted(path for package in packages for path in (root / package).rglob("*.py")):
        steps = path.relative_to(root).with_suffix("").parts
        yield ".".join(steps[:-1] if steps[-1] == "__init__" else steps), path


def assignments(root: Path, packages: Sequence[str]) -> Iterator[tuple[Table, Any]]:
    """What the modules assign to names in capitals."""
    for module, path in modules(root, packages):
        for statement in ast.parse(path.read_text("utf-8")).body:
            name = _target(statement)
            if name is not None and CAPITALS.fullmatch(name):
                yield Table(module, name), getattr(import_module(module), name)


def inside(table: Table, value: Any) -> Iterator[tuple[Table, Any]]:
    """The rows of a table that are records."""
    for at in range(len(value)):
        row = _at(value, at)
        if is_record(row):
            yield replace(table, within=(at,)), row


def parts(table: Table, record: Any) -> Iterator[tuple[Table, Any]]:
    """The tables in the fields of a record."""
    for name in sorted(PARTS):
        if is_table(value := getattr(record, name, None)):
            yield replace(table, within=(*table.within, name)), value


def is_table(value: Any) -> bool:
    return isinstance(value, (tuple, list, set, frozenset, Mapping)) and not is_record(value) and len(value) > 0


def is_record(value: Any) -> bool:
    return (is_dataclass(value) and not isinstance(value, type)) or hasattr(value, "_fields")


def words_of(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text.lower()))


def _label(member: Any) -> str:
    if isinstance(member, tuple) and not hasattr(member, "_fields") and len(member) == 2 and callable(member[1]):
        member = member[0]
    names = ("name", "key", "rule", "word", "title", "ending", "__name__", "path", "id", "fact")
    named = next((found for name in names if isinstance(found := getattr(member, name, None), str)), None)
    if named is not None and not isinstance(member, Enum):
        return str(named)  # no member of an enumeration: to unpickle one would load the engine in the parent
    return ", ".join(str(part) for part in member) if isinstance(member, tuple) else str(member)


# -- deleting one ----------------------------------------------------------------------------------------------------


def optional(record: Any) -> dict[str, Any]:
    """The fields of a value that are not as they are by default, each with its default."""
    if is_dataclass(record):
        defaults = {each.name: each.default if each.default_factory is MISSING else each.default_factory()
                    for each in fields(record)}
    else:
        defaults = getattr(record, "_field_defaults", {})
    return {name: usual for name, usual in defaults.items()
            if usual is not MISSING and getattr(record, name) != usual}


def _at(table: Any, step: int) -> Any:
    chosen = members(table)[step]
    return table[chosen] if isinstance(table, Mapping) else chosen


def members(table: Any) -> list[Any]:
    """The keys of a mapping, the fields of a value, or the members of a sequence or set, in an order that all share."""
    if is_record(table):
        return list(optional(table))
    if isinstance(table, Mapping):
        return list(table)
    return sorted(table, key=repr) if isinstance(table, (set, frozenset)) else list(table)


def with_field(record: Any, name: str, value: Any) -> Any:
    return replace(record, **{name: value}) if is_dataclass(record) else record._replace(**{name: value})


def without(table: Any, path: Sequence[Step]) -> Any:
    """The same kind of table, a row poorer."""
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        return with_field(table, step, without(getattr(table, step), rest))
    chosen = members(table)[step]
    if is_record(table):
        return with_field(table, chosen, optional(table)[chosen])
    if isinstance(table, Mapping) and rest:
        return {**table, chosen: without(table[chosen], rest)}
    if isinstance(table, Mapping):
        kept = {key: value for key, value in table.items() if key != chosen}
        return MappingProxyType(kept) if isinstance(table, MappingProxyType) else kept
    if isinstance(table, (set, frozenset)):
        return table - {chosen}
    poorer = [without(chosen, rest)] if rest else []
    return type(table)([*table[:step], *poorer, *table[step + 1 :]])


class Deleting(MetaPathFinder):
    """Imports one module with a row of one table deleted right after the table is assigned."""

    def __init__(self, row: Row) -> None:
        self.row = row

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.row.table.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = DeletingLoader(fullname, spec.origin, self.row)
        return spec


class DeletingLoader(SourceFileLoader):
    """Compiles the module anew, from its source and one statement more."""

    def __init__(self, fullname: str, path: str, row: Row) -> None:
        super().__init__(fullname, path)
        self.row = row

    def exec_module(self, module: ModuleType) -> None:
        name = self.row.table.name
        tree = ast.parse(Path(self.path).read_text("utf-8"), self.path)
        place = next(index for index, statement in enumerate(tree.body) if _target(statement) == name)
        path = (*self.row.table.within, self.row.position)
        tree.body[place + 1 : place + 1] = ast.parse(f"{name} = __without__({name}, {path!r})").body
        module.__dict__["__without__"] = without
        exec(compile(tree, self.path, "exec"), module.__dict__)


def _target(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


# -- which tests count -----------------------------------------------------------------------------------------------


class Place(Enum):
    """What is known of a test of a row."""

    LIKELY = 1
    """It missed other rows, or has a word of the row that few tests of its file have."""
    QUICK = 2
    SLOW = 3


class Behavioural:
    """A pytest plugin: leaves out tests that name the table, orders the others, and keeps what happened."""

    def __init__(self, took: Mapping[str, Mapping[str, float]], row: Row | None, best: Sequence[str]) -> None:
        self.row, self.took, self.best = row, took, best
        self.title = words_of(row.title if row else "")
        self.words = row.words if row else frozenset()
        self.place: Place | None = None
        """The tests that run now; None where all do."""
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if _function(item) in self.copies(item) or lacks_fixture(item)
                    or self.place not in (None, self.place_of(item.nodeid))]
        items[:] = sorted((item for item in items if item not in left_out), key=self.order)
        config.hook.pytest_deselected(items=left_out)

    def copies(self, item: pytest.Item) -> frozenset[str]:
        if self.row is None or self.row.tests or self.row.table.title in ASKED_BY_NAME:
            return frozenset()
        return copies(str(item.path), self.row.table)

    def order(self, item: pytest.Item) -> tuple[float, float]:
        """A test that is likely to miss the row stands before others: it missed other rows, or it has words of the row.

        A word of the row in the source of a test counts more the fewer tests of the file have it.
        """
        name = item.nodeid.lower()
        every = texts(str(item.path))
        own = self.words & every.get(_function(item), frozenset())
        rare = sum(2 / sum(word in other for other in every.values()) for word in own)
        missed = item.nodeid.partition("[")[0] in self.best
        return -(missed + sum(word in name for word in self.title) + rare), self.duration(item.nodeid)

    def place_of(self, test: str) -> Place:
        file, _, name = test.partition("::")
        if test.partition("[")[0] in self.best:
            return Place.LIKELY
        rare = name.partition("[")[0] in rare_tests(str(ROOT / file), self.words)
        if self.duration(test) > (10 * SLOW if rare else SLOW):
            return Place.SLOW
        return Place.LIKELY if rare else Place.QUICK

    def turns(self, files: Sequence[str]) -> list[tuple[str, Place | None]]:
        """Which tests of which file run first: those that missed other rows, then those of the likelier of two files
        unless they take much longer: a place in the list of files counts as its square."""
        best = {(test.partition("::")[0], Place.LIKELY): 0.0 for test in self.best}
        costs: dict[tuple[str, Place | None], float] = {**best}
        for rank, file in enumerate(files, 1):
            for test, seconds in self.took.get(file, {"": 0.0}).items():
                place = self.place_of(test) if test else None
                if (file, place) not in best and (place is not Place.SLOW or rank <= FILES):
                    costs[file, place] = costs.get((file, place), START * rank**2) + seconds * rank**2
        return sorted(costs, key=costs.__getitem__)

    def duration(self, test: str) -> float:
        """The seconds that a test takes with no row deleted; 0 where that is not known."""
        return self.took.get(test.partition("::")[0], {}).get(test, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)


def _function(item: pytest.Item) -> str:
    return str(getattr(item, "originalname", None) or item.name)


def lacks_fixture(item: pytest.Item) -> bool:
    """Whether a test asks for a fixture of a plugin that is not loaded: it would fail with any row, and with none."""
    known = item._fixtureinfo.name2fixturedefs
    return bool({*getattr(item, "fixturenames", ())} - {*known, "request"})


@cache
def copies(path: str, table: Table) -> frozenset[str]:
    """What a test file defines that names the table, itself or through something else that it defines.

    A table in a field of a record is named by the field, others by their name where the file imports it.
    """
    field = len(table.within) == 1
    found = {f".{table.within[0]}"} if field else set()
    for alias, target in imports(path).items() if not field else ():
        if target == table.module:
            found.add(f"{alias}.{table.name}")
        elif target.rpartition(".")[2] == table.name and f"{table.module}.".startswith(target.removesuffix(table.name)):
            found.add(alias)
    uses: dict[str, set[str]] = {}
    for statement in ast.parse(Path(path).read_text("utf-8")).body:
        defined = getattr(statement, "name", None) or _target(statement)
        if defined is not None and not isinstance(statement, (ast.Import, ast.ImportFrom)):
            uses.setdefault(defined, set()).update(_mentions(statement))
    while more := {name for name, used in uses.items() if name not in found and used & found}:
        found |= more
    return frozenset(found)


@cache
def texts(path: str) -> dict[str, frozenset[str]]:
    """The words of each test of a file: of its source, and of what it names that the file defines."""
    source = Path(path).read_text("utf-8")
    lines = source.lower().splitlines()
    words: dict[str, set[str]] = {}
    uses: dict[str, set[str]] = {}
    for statement in ast.parse(source).body:
        name = getattr(statement, "name", None) or _target(statement)
        if name is not None:
            first = min(each.lineno for each in (statement, *getattr(statement, "decorator_list", ())))
            words.setdefault(name, set()).update(WORD.findall("\n".join(lines[first - 1 : statement.end_lineno])))
            uses.setdefault(name, set()).update(_mentions(statement))
    return {name: frozenset(own.union(*(words[other] for other in uses[name] & words.keys())))
            for name, own in words.items() if name.startswith("test_")}


@cache
def rare_tests(path: str, words: frozenset[str]) -> frozenset[str]:
    """The tests of a file that have a word of these which at most `FEW` of its tests have."""
    every = texts(path)
    holders = ({name for name, own in every.items() if word in own} for word in words)
    return frozenset(name for found in holders if len(found) <= FEW for name in found)


@cache
def imports(path: str) -> dict[str, str]:
    """What a test file imports: the name there, and what it stands for."""
    found = {}
    for node in ast.walk(ast.parse(Path(path).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update({each.asname or each.name: each.name for each in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
    return found


def _mentions(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield from (ast.unparse(node), f".{node.attr}")
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            yield node.arg  # a fixture


Outcome = tuple[int, dict[str, float], list[str], set[str]]
"""The exit code of pytest, the seconds of each test, the tests that failed, the modules of libraries that it loaded."""
LIBRARIES = sys.stdlib_module_names | {"_pytest", "anyio", "httpcore", "httpx", "hypothesis", "jiter", "jsonschema_rs",
                                       "multidict", "pydantic", "pydantic_core", "rich", "textual", "yaml", "yarl"}
"""What a process may load before it forks: no library here starts a thread or opens a connection when it is loaded."""


# -- processes -------------------------------------------------------------------------------------------------------


def fork(work: Callable[[], Any]) -> tuple[int, Path]:
    """Starts a process that does `work` and leaves its result in a file."""
    handle, name = tempfile.mkstemp(prefix="mutant-")
    process = os.fork()
    if process:
        os.close(handle)
        return process, Path(name)
    signal.alarm(SECONDS)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    try:
        with os.fdopen(handle, "wb") as file:
            pickle.dump(work(), file)
            file.flush()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - whatever happens, no second copy of the caller may go on
        import traceback

        traceback.print_exc()
        os._exit(1)


def result(process: int, path: Path, status: int | None = None) -> Any:
    """What a forked process left; None where it died."""
    if status is None:
        _, status = os.waitpid(process, 0)
    try:
        return pickle.loads(path.read_bytes()) if status == 0 else None
    finally:
        path.unlink()


def run_files(files: Sequence[str], took: Mapping[str, Mapping[str, float]], row: Row | None,
              best: Sequence[str] = ()) -> Outcome:
    """Runs test files until a test fails, with one row deleted or with all of them."""
    if row is not None:
        sys.meta_path.insert(0, Deleting(row))
        try:
            import_module(row.table.module)
        except Exception as error:  # noqa: BLE001 - whatever it is, the program does not start
            return 0, {}, [f"the module cannot be loaded: {error!r}"], set()
    plugin = Behavioural(took, row, best)
    code = 0
    for tests, place in plugin.turns(files):
        plugin.place = place
        code = run_file(tests, plugin)
        if code == pytest.ExitCode.INTERRUPTED and row and row.table.name not in (ROOT / tests).read_text("utf-8"):
            plugin.failed = [f"{tests}: it cannot be loaded"]
        if plugin.failed:
            break
    libraries = {name for name in sys.modules if name.partition(".")[0] in LIBRARIES}
    return code, plugin.seconds, plugin.failed, libraries


READY: list[pytest.Config] = []
"""A configuration of pytest, made before the processes fork: to make one takes a fifth of the time of a row."""


def configuration() -> pytest.Config:
    """The options with which pytest runs a test file; `run_file` puts the file in the place of this one, which has no
    tests."""
    plain = ["-q", "-x", "-s", "--tb=no", "-p", "no:unraisableexception", "--rootdir", str(ROOT), __file__]
    return _prepareconfig(plain, [sys.modules["pytest_asyncio.plugin"]])


def run_file(file: str, plugin: Behavioural) -> int:
    """Runs a test file, as `pytest.main` does, and returns its exit code."""
    config = READY.pop() if READY else configuration()
    config.args[:] = [str(ROOT / file)]
    config.option.basetemp = tempfile.mkdtemp(dir=os.environ["HYPOTHESIS_STORAGE_DIRECTORY"])
    config.pluginmanager.register(plugin)
    try:
        return int(config.hook.pytest_cmdline_main(config=config))
    finally:
        config._ensure_unconfigure()


# -- which tests belong to a table -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tests:
    """What a test file tells about the tables that it tests."""

    name: str
    named: frozenset[str]
    """The words of its name."""
    modules: frozenset[str]
    """What it imports."""
    words: frozenset[str]
    """The words of its text."""


@cache
def test_paths(root: Path) -> tuple[Path, ...]:
    return tuple(sorted((root / "tests").rglob("test_*.py")))


@cache
def test_files(root: Path) -> tuple[Tests, ...]:
    found = []
    for path in test_paths(root):
        stem = path.stem.removeprefix("test_")
        known = {part for name in imports(str(path)).values() for part in (name, name.rpartition(".")[0])}
        found.append(Tests(path.relative_to(root).as_posix(), frozenset({stem, *stem.split("_")}),
                              frozenset(known), frozenset(WORD.findall(path.read_text("utf-8").lower()))))
    return tuple(found)


@cache
def importers(root: Path, packages: tuple[str, ...]) -> dict[str, set[str]]:
    """The modules that import a module."""
    found: dict[str, set[str]] = {}
    for module, path in modules(root, packages):
        for name in imports(str(path)).values():
            for target in (name, name.rpartition(".")[0]):
                found.setdefault(target, set()).add(module)
    return found


@cache
def dependents(module: str, root: Path = ROOT, packages: tuple[str, ...] = PACKAGES) -> frozenset[str]:
    """The modules that import a module, themselves or through others."""
    found: set[str] = set()
    left = [module]
    while left:
        more = importers(root, packages).get(left.pop(), set()) - found
        found |= more
        left += more
    return frozenset(found)


def of_name(table: Table) -> tuple[str, ...]:
    """The test files that are named for a table, and the one that has the name of its module or package."""
    parts = table.module.split(".")
    listed = OF_NAME.get(f"{parts[-1]}.{table.name}", OF_NAME.get(table.name, ()))
    own = [file for part in reversed(parts) for file in files_of_module().get(part, ())
           if Path(file).parent.name in parts]
    return *listed, *own[:1]


@cache
def files_of_module() -> dict[str, list[str]]:
    """The name of a module -> the test files that have its name, each in the folder of a room."""
    found: dict[str, list[str]] = {}
    for path in test_paths(ROOT):
        found.setdefault(path.stem.removeprefix("test_"), []).append(path.relative_to(ROOT).as_posix())
    return found


@cache
def holders(root: Path) -> dict[str, list[str]]:
    """A word -> the test files whose text has it."""
    found: dict[str, list[str]] = {}
    for file in test_files(root):
        for word in file.words:
            found.setdefault(word, []).append(file.name)
    return found


def likely(row: Row, best: Mapping[object, Iterable[str]], root: Path = ROOT,
           packages: tuple[str, ...] = PACKAGES) -> list[str]:
    """The test files in the order in which they are likely to miss the row. `best`: the tests that missed others, by
    `keys`.

    A file is likely if it is named for the table, if it missed others, if its name has words of the module, of the
    table or of the row, if it is in the room of the module, if it imports the module or one that imports it, and if it
    has words of the row that few files have.
    """
    table = row.table
    rooms = table.module.split(".")
    if rooms[-1] == "serving":
        rooms = ["provider"]  # how a format is played, which is tested where it is played
    names = {word for part in (*rooms, table.name.lower()) for word in (part, *part.split("_"))} | words_of(row.label)
    folders = tuple(f"tests/{room}/" for room in rooms)
    above = importers(root, packages).get(table.module, set())
    listed = of_name(table)
    missed = [(weight, {test.partition("::")[0] for test in best.get(key, ())})
              for weight, key in zip((3, 2, 1), keys(table), strict=True)]
    rare: Counter[str] = Counter()
    for word in row.words:
        found = holders(root).get(word, [])
        rare.update(dict.fromkeys(found, 1 / len(found)) if found else {})

    def score(file: Tests) -> float:
        return (3 * len(file.named & names) + 2 * (table.module in file.modules) + 2 * file.name.startswith(folders)
                + 10 * (file.name in listed) + bool(above & file.modules) + 4 * min(rare[file.name], 2)
                + sum(weight for weight, files in missed if file.name in files))

    return [file.name for file in sorted(test_files(root), key=score, reverse=True)][:MORE_FILES]


def prepare() -> None:
    """What every process shares: the checkout first on the path, no recorded traffic, no plugin that is not needed."""
    os.chdir(ROOT)
    sys.path[:] = [str(ROOT), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT / "tests")]
    os.environ["LOOP_INSPECTOR_CORPUS"] = str(ROOT / "no-recorded-traffic")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["SWEEPS"] = "all"  # a row may be missed by one cell of a sweep alone
    storage = os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp(prefix="mutants-")
    atexit.register(shutil.rmtree, storage, ignore_errors=True)
    # Imported once here, not once a row. Hypothesis' plugin is left out: it would parse every module of the project.
    import httpx  # noqa: F401
    import hypothesis.strategies  # noqa: F401
    import jsonschema_rs  # noqa: F401
    import pydantic  # noqa: F401
    import pytest_asyncio.plugin  # noqa: F401
    import textual.app  # noqa: F401
    import yaml  # noqa: F401

    READY.append(configuration())
    gc.freeze()  # what all processes share need not be searched in each


def part(text: str) -> tuple[int, int]:
    """`K/N` as numbers, from 1/1 on; raises `ValueError` if it is none."""
    number, count = map(int, text.split("/"))
    if not 1 <= number <= count:
        raise ValueError(text)
    return number, count


def rows_of(found: Sequence[Row], number: int, count: int) -> Sequence[Row]:
    """The rows of a part. Those of a table are in one part: what misses one is tried for the next, and the words of all
    of them tell which test files are likely."""
    first: dict[Table, int] = {}
    for at, row in enumerate(found):
        first.setdefault(row.table, at)
    return [row for row in found if first[row.table] * count // len(found) == number - 1]


def main() -> int:
    """Tries every row; the exit code says whether each was missed."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("words", nargs="*")
    asked.add_argument("--list", action="store_true")
    asked.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    asked.add_argument("--times", type=Path, metavar="REPORT", help="the JUnit report of a run of all tests")
    asked.add_argument("--part", type=part, default=(1, 1), metavar="K/N",
                       help="only the rows of one of N parts")
    asked.add_argument("-v", "--verbose", action="store_true")
    options = asked.parse_args()
    prepare()
    began = time.monotonic()
    found: list[Row] | None = result(*fork(lambda: rows(by_name=bool(options.words))))
    if not found:
        print("the tables could not be read", file=sys.stderr)
        return 2
    chosen = [row for row in rows_of(found, *options.part)
              if not options.words or any(word in row.title for word in options.words)]
    if options.list:
        print("\n".join(row.title for row in chosen))
        return 0
    survivors = run(chosen, options.jobs, options.verbose, report_times(options.times) if options.times else {})
    print(f"{len(chosen)} rows in {time.monotonic() - began:.0f} s, {len(survivors)} that no behavioural test misses")
    for row, why in survivors:
        print(f"  {row.title}: {why}")
    return 1 if survivors else 0


def run(chosen: Sequence[Row], jobs: int, verbose: bool, took: dict[str, dict[str, float]]) -> list[tuple[Row, str]]:
    """The rows whose deletion no test notices, each with what happened instead. `took`: file -> test -> seconds."""
    survivors: list[tuple[Row, str]] = []
    broken: set[str] = set()
    # First the rows of what most modules import, which can be shared then. The first row of every table of a module
    # before the others: the test that misses it is tried first for the rest.
    waiting = sorted(chosen, key=lambda row: (-len(dependents(row.table.module)), row.table.module,
                                              row.position > 0))[::-1]
    shared = SharedModules(chosen)
    shared.share()
    running: dict[int, tuple[Row, Path, list[str]]] = {}
    best: dict[object, dict[str, None]] = {}  # the tests that missed other rows: of the table, its module, its name
    while waiting or running:
        while waiting and len(running) < jobs:
            row = waiting.pop()
            files = [row.tests] if row.tests else [file for file in likely(row, best) if file not in broken]
            first = tests_of_others(row, best)
            copies(str(ROOT / files[0]), row.table)  # these two once here, not once a row
            for file in files:
                texts(str(ROOT / file))
            process, path = fork(lambda row=row, files=files, first=first: run_files(files, took, row, first))
            running[process] = row, path, first
        process, status, used = os.wait4(-1, 0)
        row, path, first = running.pop(process)
        outcome = result(process, path, status)
        failed = outcome[2] if outcome is not None else []
        for test in failed:
            file = test.partition("::")[0]
            if "::" in test and file not in took:
                took[file], why = baseline(file)
                if why:
                    broken.add(file)
                    print(why, file=sys.stderr)
            if "::" in test and file not in broken:
                for key in keys(row.table):
                    best[key] = {test.partition("[")[0]: None, **best.get(key, {})}
        if failed and failed[0].partition("::")[0] in broken:
            waiting.append(row)
            continue
        if outcome and not failed and not {*tests_of_others(row, best)} <= {*first}:
            waiting.insert(0, row)  # tests that missed other rows are known now
            continue
        load(outcome[3] if outcome is not None else ())
        shared.done(row)
        died = "" if outcome else f"its tests died or took longer than {SECONDS} s"
        why = "" if failed else died or "no test of the likely files misses it"
        if verbose:
            print(f"{used.ru_utime + used.ru_stime:5.1f} s  {row.title}: {why or failed[0]}", flush=True)
        if why:
            survivors.append((row, why))
    return survivors


def tests_of_others(row: Row, best: Mapping[object, Iterable[str]]) -> list[str]:
    """The newest tests that missed other rows of the row's table, or of a table of the same name."""
    return [test for key in (row.table, row.table.name) for test in [*best.get(key, ())][:NEWEST]]


def keys(table: Table) -> tuple[object, ...]:
    """What a table has in common with others: itself, its module, its name."""
    return table, table.module, table.name


def baseline(tests: str) -> tuple[dict[str, float], str]:
    """How long each test of a file takes with no row deleted, and why the file cannot be used, if it cannot."""
    ran = result(*fork(lambda: run_files([tests], {}, None)))
    if ran is None or ran[0] != pytest.ExitCode.OK:
        return {}, f"{tests} fails with no row deleted ({'it died' if ran is None else ran[2] or ran[0]})"
    return ran[1], ""


class RowsLeftError(BaseException):
    """A module was to be imported of which rows are left to delete. No `except` of another module catches it."""


class Refusing(MetaPathFinder):
    """Refuses to import the modules of which rows are left: their rows are deleted as they are loaded."""

    def __init__(self, left: Mapping[str, int]) -> None:
        self.left = left

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if self.left.get(fullname):
            raise RowsLeftError(fullname)


class SharedModules:
    """The modules of the packages that the rows to come leave as they are: each is imported once, not once a row.

    A module can be shared when no row of it is left, nor of those that it imports.
    """

    def __init__(self, chosen: Iterable[Row], root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> None:
        self.root, self.packages = root, tuple(packages)
        self.left = Counter(row.table.module for row in chosen)
        self.waits_for: dict[str, str] = {module: "" for module, _ in modules(root, packages)}
        """The modules that are not shared yet, each with the module that it waits for."""

    def done(self, row: Row) -> None:
        """Notes that a row is done, and imports what waited for the last row of its module."""
        self.left[row.table.module] -= 1
        if not self.left[row.table.module]:
            self.share()

    def share(self) -> None:
        """Imports what need not wait any longer. A process tries it first: a module that was imported in part, or a
        cache that knows one, would make tests of later rows fail for no row."""
        # What a module imports comes before it.
        above = {module: len(dependents(module, self.root, self.packages)) for module in self.waits_for}
        waiting = [module for module, other in sorted(self.waits_for.items(), key=lambda each: -above[each[0]])
                   if not (self.left[other] or self.left[module])]
        while waiting:
            count, refused = result(*fork(lambda waiting=waiting: self.attempt(waiting)))
            for module in waiting[:count]:
                import_or_not(module)
                del self.waits_for[module]
            for module in waiting[count : count + 1]:
                self.waits_for[module] = refused
            waiting = waiting[count + 1 :]
        gc.freeze()

    def attempt(self, waiting: Sequence[str]) -> tuple[int, str]:
        """How many of the modules can be imported in turn, and which module the next one must wait for."""
        sys.meta_path.insert(0, Refusing(self.left))
        for count, module in enumerate(waiting):
            try:
                import_or_not(module)
            except RowsLeftError as found:
                return count, str(found)
        return len(waiting), ""


def import_or_not(module: str) -> None:
    """Imports a module, unless it needs a library that is not installed."""
    with suppress(ImportError):
        import_module(module)


def load(modules: Iterable[str]) -> None:
    """Imports what the tests of a row imported of the libraries, so that those of the next need not."""
    for name in sorted(modules - sys.modules.keys()):
        with suppress(Exception):  # a module that its library loads in another way only
            import_module(name)
    gc.freeze()


def report_times(path: Path) -> dict[str, dict[str, float]]:
    """How long each test took by a JUnit report: file -> test -> seconds.

    A report names a test by its module and its name: `tests.turn.test_limits`, `test_a_cap[1]`.
    """
    took: dict[str, dict[str, float]] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        module = str(case.get("classname"))
        file = module.replace(".", "/") + ".py"
        took.setdefault(file, {})[f"{file}::{case.get('name')}"] = float(case.get("time") or 0)
    return took


if __name__ == "__main__":
    raise SystemExit(main())
