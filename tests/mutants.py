"""Deletes every row of every table, one at a time, and asks for a behavioural test that fails.

    python tests/mutants.py [-v] [--list] [--jobs N] [--times REPORT] [WORD ...]
                                                                    only rows whose name holds one of the words

Each row is deleted in a process of its own, as soon as its table is assigned, so that whatever is derived from the
table is derived without it; then the test file that belongs to the table runs until its first failure: first the
tests that missed other rows of the table, of these the ones whose names have most words of the row's, quick ones
first. How long each test takes stands in the JUnit report of a run of the whole suite; without one, each file runs
once before its rows are deleted. A test that names the table, itself or through what it calls, does not count: a copy
of a table proves nothing.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
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

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 120
"""A row whose tests take longer is reported: a mutant must not hang the build."""
WORD = re.compile(r"[a-z0-9_]{3,}")
"""A word of the name of a row, or of a test."""
Step = int | str
"""A position in a table, or the field of a row that holds a table of its own."""


@dataclass(frozen=True)
class Table:
    """A table: where it is assigned, the test file that belongs to it, and the names that make a test a copy of it."""

    module: str
    name: str
    tests: str
    within: tuple[Step, ...] = ()
    names: tuple[str, ...] = ()
    """Where these are not just `name`."""

    @property
    def title(self) -> str:
        return ".".join([self.module.removeprefix("loop_core."), self.name, *(str(step) for step in self.within)])


@dataclass(frozen=True)
class Row:
    table: Table
    position: int
    label: str

    @property
    def title(self) -> str:
        return f"{self.table.title}[{self.label}]"


ENGINE: tuple[Table, ...] = (
    Table("loop_core.turn.machine", "TRANSITIONS", "tests/turn/test_machine.py"),
    Table("loop_core.turn.moves", "NOTICES", "tests/turn/test_machine.py"),
    Table("loop_core.turn.moves", "ENDING_NOTICES", "tests/turn/test_machine.py"),
    Table("loop_core.turn.costs", "_GOING_ON", "tests/turn/test_machine.py"),
    Table("loop_core.turn.costs", "REFUSALS", "tests/turn/test_machine.py"),
    Table("loop_core.turn.costs", "REFUSED_STATUS", "tests/turn/test_machine.py"),
    Table("loop_core.turn.policy", "ENDING_SIGNALS", "tests/turn/test_machine.py"),
    Table("loop_core.turn.moves", "_TERMINAL_SIGNALS", "tests/turn/test_machine.py"),
    Table("loop_core.turn.moves", "GUARD_PLACES", "tests/turn/test_machine.py"),
    Table("loop_core.turn.state", "ENDED", "tests/turn/test_machine.py"),
    Table("loop_core.turn.state", "_GOES_ON", "tests/turn/test_machine.py"),
    Table("loop_core.turn.limits", "GUARDS", "tests/turn/test_limits.py"),
    Table("loop_core.turn.limits", "RANGES", "tests/turn/test_limits.py"),
    Table("inspector.replay.known", "CONTINUING", "tests/replay/test_known.py"),
    Table("loop_core.judge.classify", "RULES", "tests/judge/test_classify.py"),
    Table("loop_core.judge.classify", "WORDLESS", "tests/judge/test_classify.py"),
    Table("loop_core.judge.endings", "ENDINGS", "tests/judge/test_endings.py"),
    Table("loop_core.judge.endings", "SILENT", "tests/judge/test_endings.py"),
    Table("loop_core.judge.endings", "INVISIBLE", "tests/judge/test_endings.py"),
    Table("loop_core.judge.endings", "OUTPUTS", "tests/judge/test_endings.py"),
    Table("loop_core.judge.endings", "UNREAD_RULES", "tests/judge/test_endings.py"),
    Table("loop_core.judge.endings", "STOP_FIELDS", "tests/judge/test_endings.py"),
    Table("loop_core.judge.endings", "HITS", "tests/judge/test_endings.py"),
    Table("loop_core.judge.signs", "CALL_MARKS", "tests/judge/test_markup.py"),
    Table("loop_core.judge.signs", "_SIGNS", "tests/judge/test_markup.py"),
    Table("loop_core.judge.signs", "FUNCTION_WORDS", "tests/judge/test_middle.py"),
    Table("loop_core.judge.signs", "PARTICLES", "tests/judge/test_middle.py"),
    Table("loop_core.judge.signs", "COMMAS", "tests/judge/test_middle.py"),
    Table("loop_core.judge.signs", "SIGNS", "tests/judge/test_middle.py"),
    Table("loop_core.judge.arguments", "COMPOSING_KEYWORDS", "tests/judge/test_schema.py"),
    Table("loop_core.judge.arguments", "PARAMETERS", "tests/judge/test_schema.py"),
    Table("loop_core.judge.gate", "LOADING_TOOLS", "tests/judge/test_gate.py"),
    Table("loop_core.judge.classify", "LOST_FRAME_RULES", "tests/judge/test_classify.py"),
    Table("loop_core.judge.classify", "FINISHED", "tests/judge/test_classify.py"),
    Table("loop_core.judge.classify", "FAILING", "tests/judge/test_classify.py"),
    Table("loop_core.judge.gate", "WHY_REASON", "tests/judge/test_gate.py"),
    Table("loop_core.turn.continuation", "HINT_POINTS", "tests/turn/test_history.py"),
    Table("loop_core.turn.trace", "GUARDED_EXITS", "tests/turn/test_events.py"),
    Table("loop_core.turn.policy", "STRICT_SIGNALS", "tests/turn/test_policy.py"),
    Table("loop_core.turn.policy", "MAY_RUN", "tests/turn/test_presets.py"),
    Table("loop_core.turn.seam", "RULES", "tests/turn/test_seam.py"),
    Table("loop_core.turn.continuation", "OPENINGS", "tests/turn/test_openings.py"),
    Table("loop_core.turn.continuation", "FOLDS", "tests/turn/test_quotation.py"),
    Table("loop_core.turn.quotation", "PAIRS", "tests/turn/test_quotation.py"),
    Table("loop_core.turn.continuation", "QUOTE_MARKS", "tests/turn/test_quotation.py"),
    Table("loop_core.client.outgoing", "ON_TOP", "tests/client/test_outgoing.py"),
    Table("loop_core.client.outgoing", "MARKS", "tests/client/test_outgoing.py"),
    Table("loop_core.client.address", "KEY_HEADERS", "tests/client/test_transport.py"),
    Table("loop_core.client.address", "PREFILLS_UNDER", "tests/client/test_transport.py"),
    Table("loop_core.client.transport", "_FAILURES", "tests/client/test_transport.py"),
    Table("loop_core", "_HOMES", "tests/test_library.py"),
    Table("inspector.provider", "_HOMES", "tests/test_library.py"),
    Table("loop_core.client.outgoing", "ROLES", "tests/client/test_conversation.py"),
    Table("loop_core.wire.gemini_generate.table", "TAKES", "tests/wire/test_asking.py"),
    Table("loop_core.wire.gemini_interactions.table", "LAST_EVENTS", "tests/wire/test_gemini_interactions.py"),
    Table("loop_core.wire.gemini_generate.request", "DECLARED_AS", "tests/wire/test_asking.py"),
    Table("loop_core.wire.openai_chat.request", "TOOL_CHOICES", "tests/wire/test_asking.py"),
    Table("loop_core.wire.openai_responses.request", "TOOL_CHOICES", "tests/wire/test_asking.py"),
    *(Table(f"loop_core.wire.{api}.request", "CHOICES", "tests/wire/test_asking.py") for api in (
        "anthropic_messages", "gemini_generate", "bedrock_converse", "ollama_chat", "gemini_interactions")),
    Table("inspector.live.inputs", "VARIABLES", "tests/live/test_run.py"),
    Table("inspector.live.headless", "EXITS", "tests/live/test_run.py"),
    Table("inspector.export.conventions", "PROVIDERS", "tests/export/test_convention_names.py"),
    Table("inspector.export.conventions", "INSTRUMENTS", "tests/export/test_otel_sdk.py"),
    Table("inspector.export.otel_spans", "FAILED", "tests/export/test_spans.py", names=("spans.FAILED",)),
    Table("inspector.export.otel_spans", "PEACEFUL", "tests/export/test_spans.py"),
    Table("inspector.report.times", "_UNITS", "tests/export/test_spans.py"),
    Table("inspector.export.otel_sdk", "PROTOCOLS", "tests/export/test_otel_sdk.py"),
    Table("inspector.live.target", "SPELLINGS", "tests/live/test_grafting.py"),
    Table("inspector.live.target", "KEPT_HEADERS", "tests/live/test_target.py"),
    Table("inspector.replay.case", "REQUEST_PLACES", "tests/live/test_again.py"),
    Table("loop_core.wire.failures", "MARKS", "tests/wire/test_failures.py"),
    Table("loop_core.wire.failures", "RETRYABLE_STATUS", "tests/wire/test_failures.py"),
    Table("loop_core.wire.failures", "RETRYABLE_WORDS", "tests/wire/test_failures.py"),
    Table("loop_core.wire.failures", "FATAL_WORDS", "tests/wire/test_failures.py"),
)
REPORT: tuple[Table, ...] = (
    Table("inspector.sessions.provenance", "FACTS", "tests/report/test_document.py"),
    Table("inspector.report.verdict", "ROWS", "tests/report/test_verdict.py"),
    Table("inspector.report.verdict", "RESUMED", "tests/report/test_verdict_words.py"),
    Table("inspector.report.advice", "COUNTS", "tests/report/test_advice.py"),
    Table("inspector.report.advice", "SITUATIONS", "tests/report/test_advice.py"),
    Table("inspector.report.advice", "RAISED", "tests/report/test_advice.py"),
    Table("inspector.report.advice", "FAILURES", "tests/report/test_advice.py"),
    Table("inspector.report.sentences", "EXPLANATIONS", "tests/report/test_verdict_words.py"),
    Table("inspector.sessions.transcripts.ending_rules", "RULES", "tests/sessions/test_claude_code.py"),
    Table("inspector.sessions.importers.claude_rows", "ENDED", "tests/sessions/test_claude_code.py"),
    Table("inspector.sessions.importers.claude_rows", "HOOKS", "tests/sessions/test_claude_code.py"),
    Table("inspector.sessions.importers.claude_rows", "OWN", "tests/sessions/test_stopped.py"),
    Table("inspector.sessions.wordings", "REFUSALS", "tests/sessions/test_stopped.py"),
    Table("inspector.sessions.transcripts.ending_rules", "TASKS", "tests/sessions/test_stopped.py"),
    Table("inspector.sessions.transcripts.ending_rules", "BEHIND", "tests/sessions/test_stopped.py"),
    Table("inspector.sessions.wordings", "LOST", "tests/sessions/test_stopped.py"),
    *(Table("inspector.sessions.importers.claude_tap", table, "tests/sessions/test_claude_tap.py")
      for table in ("WHOLE", "LISTS", "_IDS")),
    *(Table("inspector.sessions.importers.litellm", table, "tests/sessions/test_litellm.py")
      for table in ("CAPS", "FIELDS", "PACKED")),
    *(Table("inspector.sessions.importers.inspect_ai", table, "tests/sessions/test_inspect_ai.py") for table in (
        "FIELDS", "STOPS", "CAPS", "WITHOUT_ANSWER")),
    Table("inspector.sessions.importers.inspect_ai", "CALLING", "tests/sessions/test_inspect_ai.py"),
    *(Table("inspector.sessions.importers.gemini_cli", table, "tests/sessions/test_gemini_cli.py") for table in (
        "FIELDS", "STOPS", "MODEL", "NOTES", "OPEN")),
    *(Table(f"inspector.sessions.{module}", table, "tests/sessions/test_droid_cursor.py") for module, table in (
        ("importers.droid", "FIELDS"), ("importers.droid", "PASSED"), ("importers.droid", "COUNTS"),
        ("importers.cursor", "FIELDS"), ("importers.cursor", "ENDED"), ("importers.cursor", "INTERRUPTED"),
        ("transcripts.chat_messages", "CALLS"), ("transcripts.chat_messages", "RESULTS"))),
    Table("inspector.sessions.importers.atif", "FIELDS", "tests/sessions/test_atif.py"),
    Table("inspector.sessions.importers.atif", "WORDS", "tests/sessions/test_atif.py"),
    *(Table("inspector.sessions.importers.otlp", table, "tests/sessions/test_otlp.py") for table in (
        "FIELDS", "OWN_WORDS", "RESOURCES", "SCOPES")),
    *(Table("inspector.sessions.importers.span_names", table, "tests/sessions/test_otlp.py") for table in (
        "ANSWERING", "SYSTEMS", "CAPS", "INPUTS", "OUTPUTS", "FACTS")),
    *(Table("inspector.sessions.importers.openhands", table, "tests/sessions/test_openhands.py") for table in (
        "FIELDS", "ENDED", "LISTS", "PASSED")),
    *(Table(f"inspector.sessions.importers.{name}", table, "tests/sessions/test_trajectories.py") for name, table in (
        ("swe_agent", "FIELDS"), ("swe_agent", "LISTS"), ("mini_swe_agent", "FIELDS"), ("mini_swe_agent", "NAMES"))),
    Table("inspector.sessions.importers.codex_items", "ENVELOPES", "tests/sessions/test_codex.py", names=("no copy",)),
    Table("inspector.sessions.importers.codex_items", "ITEMS", "tests/sessions/test_codex.py", names=("no copy",)),
    Table("inspector.sessions.importers.codex", "ENDED", "tests/sessions/test_codex.py", names=("no copy",)),
    Table("inspector.sessions.importers.kimi", "STOPS", "tests/sessions/test_kimi.py"),
    Table("inspector.sessions.importers.kimi", "APIS", "tests/sessions/test_kimi.py"),
    *(Table("inspector.sessions.importers.roo", name, "tests/sessions/test_roo.py") for name in (
        "APIS", "CANCELS", "NOTES", "FIELDS")),
    *(Table("inspector.sessions.importers.continue_dev", name, "tests/sessions/test_continue.py") for name in (
        "ENDED", "FIELDS")),
    *(Table("inspector.sessions.importers.vscode_chat", name, "tests/sessions/test_vscode_chat.py") for name in (
        "CODES", "FIELDS")),
    Table("inspector.sessions.importers.zeroclaw_trace", "FIELDS", "tests/sessions/test_zeroclaw_trace.py"),
    *(Table("inspector.sessions.importers.codex_exec", name, "tests/sessions/test_codex_exec.py") for name in (
        "EVENTS", "TOOLS", "CUTS", "FIELDS")),
    Table("inspector.sessions.importers.zeroclaw", "FIELDS", "tests/sessions/test_seed_agents.py"),
    Table("inspector.sessions.importers.botnexus", "FIELDS", "tests/sessions/test_seed_agents.py"),
    Table("inspector.sessions.importers.qwen", "OWN", "tests/sessions/test_qwen.py"),
    Table("inspector.sessions.importers.langfuse", "CAPS", "tests/sessions/test_langfuse.py"),
    Table("inspector.sessions.importers.pi", "STOPS", "tests/sessions/test_pi.py"),
    Table("inspector.sessions.importers.pi", "APIS", "tests/sessions/test_pi.py"),
    Table("inspector.sessions.importers.pi", "FIELDS", "tests/sessions/test_odd_members.py"),
    *(Table(f"inspector.sessions.importers.{module}", name, "tests/sessions/test_chats.py") for module, name in (
        ("hermes", "STOPS"), ("hermes", "FIELDS"), ("crush", "STOPS"), ("crush", "APIS"), ("crush", "FIELDS"),
        ("goose", "FIELDS"), ("amp", "STOPS"), ("amp", "APIS"), ("amp", "FAILED"), ("amp", "FIELDS"))),
    *(Table("inspector.sessions.importers.opencode", name, "tests/sessions/test_opencode.py") for name in (
        "APIS", "PARTS", "OWN", "FIELDS")),
    *(Table("inspector.sessions.importers.opencode_parts", name, "tests/sessions/test_opencode.py") for name in (
        "STOPS", "ERRORS")),
    Table("inspector.sessions.importers.claude_code", "FIELDS", "tests/sessions/test_odd_members.py"),
    *(Table("inspector.sessions.credentials", name, "tests/sessions/test_redact.py") for name in (
        "NAMES", "PASSWORDS")),
    Table("inspector.sessions.detection", "VARIABLES", "tests/sessions/test_redact.py"),
    Table("inspector.sessions.credential_values", "NO_VARIABLES", "tests/sessions/test_redact.py"),
    Table("inspector.sessions.detection", "_CONTEXTS", "tests/sessions/test_redact.py"),
    Table("inspector.sessions.detection", "_OWN_SHAPES", "tests/sessions/test_redact.py"),
    Table("inspector.commands.sessions", "SCHEMAS", "tests/commands/test_cli.py"),
    *(Table("inspector.report.filter_terms", table, "tests/report/test_filters.py") for table in ("WORDS", "NUMBERS")),
    Table("inspector.report.findings", "CUT_WORDS", "tests/report/test_findings.py"),
    # Its rows are asked for by name in every test; none is a copy of it.
    Table("inspector.provider.scenarios", "SCENARIOS", "tests/provider/test_dialect_expected.py", names=("no copy",)),
    Table("inspector.provider.dialects", "OTHERS", "tests/provider/test_dialect_expected.py"),
    Table("inspector.provider.faults", "FAULTS", "tests/provider/test_expected.py"),
    Table("loop_core.wire.serving", "OPENAI_CODES", "tests/provider/test_serving.py"),
    Table("loop_core.wire.openai_responses.serving", "CALLS", "tests/provider/test_checks.py"),
    Table("loop_core.wire.openai_responses.serving", "KEPT", "tests/provider/test_checks.py"),
    Table("inspector.provider.checks", "CODES", "tests/provider/test_checks.py"),
    Table("inspector.provider.checks", "BOUNDS", "tests/provider/test_checks.py"),
    Table("inspector.provider.dialects", "PEER_WORDS", "tests/provider/test_dialect_expected.py"),
    Table("inspector.provider.dialects", "PEER_MEANINGS", "tests/provider/test_dialect_expected.py"),
    Table("inspector.provider.dialect_rows", "DECISIONS", "tests/provider/test_dialect_expected.py"),
    Table("inspector.provider.dialect_columns", "COLUMNS", "tests/provider/test_dialect_columns.py",
          names=("dialect_columns.COLUMNS",)),
    Table("inspector.provider.dialect_output", "STEPS", "tests/provider/test_dialect_columns.py"),
    Table("inspector.check.rules", "_EVERY", "tests/check/test_rules.py"),
    Table("inspector.check.finders", "DEFAULT_CAPS", "tests/check/test_rules.py", names=("no copy",)),
    Table("inspector.check.stats", "COUNTS", "tests/check/test_stats.py", ("columns",)),
    Table("inspector.check.stats", "CSV", "tests/check/test_stats.py", ("columns",)),
    Table("inspector.check.agent_tools", "TOOLS", "tests/check/test_mcp.py", names=("no copy",)),
    Table("inspector.check.report_forms", "FORMS", "tests/check/test_check.py", names=("no copy",)),
    Table("inspector.report.lines.json_roles", "ROLES", "tests/report/test_json_roles.py"),
    Table("inspector.sessions.traffic", "_BEFORE", "tests/report/test_times.py"),
    Table("inspector.report.lines.calls", "_RUNS", "tests/whatif/test_policies.py"),
    Table("inspector.report.lines.calls", "_HOLDS", "tests/whatif/test_policies.py"),
    Table("inspector.report.lines.calls", "SAYS", "tests/whatif/test_policies.py"),
    Table("inspector.whatif.turn_pair", "FACTS", "tests/whatif/test_turn_pair.py"),
    Table("inspector.whatif.store", "ACTS", "tests/whatif/test_store.py"),
    Table("inspector.whatif.policies", "DECISIONS", "tests/whatif/test_policies.py"),
    *(Table("inspector.whatif.policies_report", name, "tests/whatif/test_policies.py", ("columns",))
      for name in ("CELLS", "ROWS")),
    Table("inspector.whatif.grid_report", "ENDS", "tests/whatif/test_tune_report.py", ("columns",)),
    Table("inspector.whatif.sweep", "LEAST", "tests/whatif/test_sweep.py"),
    Table("inspector.whatif.grid", "APART", "tests/whatif/test_sweep.py"),
    Table("inspector.whatif.heat", "SHOWS", "tests/whatif/test_tune_report.py"),
    Table("inspector.tui.command_line", "PLACES", "tests/tui/test_parts.py"),
    Table("inspector.web.browser", "RULES", "tests/web/test_entrance.py"),
    Table("inspector.web.browser", "FRAMES", "tests/web/test_frames.py"),
    Table("inspector.web.browser", "HEADERS", "tests/web/test_front.py"),
    Table("inspector.web.browser", "FILES", "tests/web/test_front.py"),
    Table("inspector.web.tab", "SCHEMES", "tests/web/test_app_server.py"),
)
BELIEFS = ("words", "unlisted", "reason_map", "promotions", "signals", "lacks")
"""The fields of a preset that are tables."""
FORMAT_TABLES = re.compile(r"[A-Z_]*REASONS|BACKGROUND")
"""The tables of a wire format that are found by their names, wherever its package assigns them."""
READS = re.compile(r"READS")
"""The table of what a wire format reads where."""
SERVED_TESTS = {"SAYS": "tests/provider/test_dialect_expected.py", "CANNOT": "tests/provider/test_faults.py",
                "ENDS": "tests/provider/test_faults.py", "PEERS": "tests/provider/test_dialect_expected.py",
                "MEMBERS": "tests/provider/test_checks.py", "RULES": "tests/provider/test_checks.py"}
"""The tables of how a server of a wire format is played, and their tests."""
SERVED = re.compile("|".join(SERVED_TESTS))
FIELD_TESTS = {
    "late_system": "tests/client/test_outgoing.py", "least_cap": "tests/turn/test_limits.py",
    "names_stop_strings": "tests/judge/test_endings.py", "servers": "tests/wire/test_profiles.py",
    "prefills": "tests/client/test_outgoing.py", "chained": "tests/client/test_outgoing.py",
    "body_marks": "tests/client/test_outgoing.py", "reduced": "tests/client/test_outgoing.py",
    "stream_type": "tests/client/test_exchange.py", "region": "tests/live/test_aws.py",
    "joints": "tests/wire/test_provenance.py", "word_paths": "tests/sessions/test_inspect_ai.py",
    "no_tools": "tests/live/test_scripted.py", "wrapped": "tests/provider/test_sdk_types.py",
    "history": "tests/live/test_run.py", "rules": "tests/report/test_document.py",
    "json_shape": "tests/provider/test_checks.py", "follows": "tests/provider/test_serving.py",
    **dict.fromkeys(("count", "near", "client_header", "request_id", "dated"), "tests/provider/test_endpoints.py"),
}
"""Fields of a wire format, of its row in the registry and of how it is served that need not be given, and their
tests."""
SERVERS = Table("loop_core.wire.servers", "SERVERS", "tests/wire/test_profiles.py", names=("SERVERS", "PROFILES"))


# -- which rows there are (in a process of its own: nothing here may be imported before it is mutated) ----------------


def rows() -> list[Row]:
    """Every row of every table."""
    return [row for table in tables() for row in rows_of(table)]


def tables() -> Iterator[Table]:
    from loop_core.turn.presets import POLICIES, STRICT
    from loop_core.wire import FORMATS
    from loop_core.wire.servers import SERVERS as PROFILES

    for api, entry in FORMATS.items():
        for module, name in _assigned(entry.package, FORMAT_TABLES):
            yield Table(module, name, f"tests/wire/test_{api}.py")
        for module, name in _assigned(entry.package, READS):
            yield Table(module, name, "tests/wire/test_provenance.py")
        for module, name in _assigned(entry.package, SERVED):
            yield Table(module, name, SERVED_TESTS[name])
        yield Table(entry.package, "FORMAT", "", names=("no copy",))
        yield Table(f"{entry.package}.serving", "SERVING", "", names=("no copy",))
        yield Table("loop_core.formats", "FORMATS", "", (list(FORMATS).index(api),), ("no copy",))
    yield SERVERS
    for position, profile in enumerate(PROFILES):
        if profile.words:
            yield replace(SERVERS, within=(position, "words"))
    yield from ENGINE
    yield from REPORT
    holders = vars(sys.modules["loop_core.turn.presets"])
    for policy in POLICIES.values():
        name = next(name for name, value in holders.items() if value is policy)
        for field in BELIEFS:
            if policy is not STRICT and getattr(policy, field):
                yield Table("loop_core.turn.presets", name, "tests/turn/test_presets.py", (field,), (field,))


def rows_of(table: Table) -> Iterator[Row]:
    value = getattr(__import__(table.module, fromlist=["_"]), table.name)
    for step in table.within:
        value = getattr(value, step) if isinstance(step, str) else _at(value, step)
    for position, member in enumerate(members(value)):
        if not optional(value):
            yield Row(table, position, _label(member))
        elif member in FIELD_TESTS:
            yield Row(replace(table, tests=FIELD_TESTS[member]), position, member)


def _assigned(package: str, name: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    folder = ROOT / Path(*package.split("."))
    for path in sorted(folder.glob("*.py")) or [folder.with_suffix(".py")]:  # a small format is one module
        module = package if path.stem in ("__init__", folder.name) else f"{package}.{path.stem}"
        for statement in ast.parse(path.read_text("utf-8")).body:
            target = _target(statement)
            if target is not None and name.fullmatch(target):
                yield module, target


def _label(member: Any) -> str:
    if isinstance(member, tuple) and not hasattr(member, "_fields") and len(member) == 2 and callable(member[1]):
        member = member[0]
    names = ("name", "key", "rule", "word", "title", "ending", "__name__")
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
    if optional(table):
        return list(optional(table))
    if isinstance(table, Mapping):
        return list(table)
    if is_dataclass(table):
        return []  # every field is as it is by default
    return sorted(table, key=repr) if isinstance(table, (set, frozenset)) else list(table)


def without(table: Any, path: Sequence[Step]) -> Any:
    """The same kind of table, a row poorer."""
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        return replace(table, **{step: without(getattr(table, step), rest)})
    chosen = members(table)[step]
    if optional(table):
        return replace(table, **{chosen: optional(table)[chosen]}) if is_dataclass(table) else table._replace(
            **{chosen: optional(table)[chosen]})
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


class Behavioural:
    """A pytest plugin: leaves out tests that name the table, orders the others, and keeps what happened."""

    def __init__(self, names: Iterable[str], took: Mapping[str, float], row: Row | None, best: Set[str]) -> None:
        self.names, self.took, self.best = frozenset(names), took, best
        self.words = frozenset(WORD.findall(row.title.lower())) if row else frozenset()
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if _function(item) in copies(str(item.path), self.names)]
        items[:] = sorted((item for item in items if item not in left_out), key=self.place)
        config.hook.pytest_deselected(items=left_out)

    def place(self, item: pytest.Item) -> tuple[bool, int, float]:
        """A test that is likely to miss the row stands before others."""
        name = item.nodeid.lower()
        return (item.nodeid.partition("[")[0] not in self.best, -sum(word in name for word in self.words),
                self.took.get(item.nodeid, 0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)


def _function(item: pytest.Item) -> str:
    return str(getattr(item, "originalname", None) or item.name)


@cache
def copies(path: str, names: frozenset[str]) -> frozenset[str]:
    """What a test file defines that names one of `names`, itself or through something else that it defines."""
    uses: dict[str, set[str]] = {}
    for statement in ast.parse(Path(path).read_text("utf-8")).body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        defined = getattr(statement, "name", None) or _target(statement)
        if defined is not None:
            uses.setdefault(defined, set()).update(_mentioned(statement))
    found = set(names)
    while more := {name for name, used in uses.items() if name not in found and used & found}:
        found |= more
    return frozenset(found)


def _mentioned(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            yield node.arg  # a fixture


Outcome = tuple[int, dict[str, float], list[str], set[str]]
"""The exit code of pytest, the seconds of each test, the tests that failed, the modules of libraries that it loaded."""
LIBRARIES = sys.stdlib_module_names | {"_pytest", "anyio", "httpcore", "httpx", "hypothesis", "jiter", "jsonschema_rs",
                                       "multidict", "pydantic", "pydantic_core", "rich", "textual", "yaml", "yarl"}
"""What a process may load before it forks: no library here starts a thread or opens a connection when it is loaded."""


# -- processes -------------------------------------------------------------------------------------------------------


def forked(work: Callable[[], Any]) -> tuple[int, Path]:
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


def tried(tests: str, took: Mapping[str, float], row: Row | None, best: Set[str] = frozenset()) -> Outcome:
    """Runs one test file, with one row deleted or with all of them."""
    if row is not None:
        sys.meta_path.insert(0, Deleting(row))
    plugin = Behavioural(names_of(row), took, row, best)
    needed = [sys.modules["_hypothesis_pytestplugin"], sys.modules["pytest_asyncio.plugin"]]
    plain = ["-q", "-x", "--tb=no", "-p", "no:unraisableexception", "--rootdir", str(ROOT), str(ROOT / tests)]
    code = pytest.main(plain, plugins=[plugin, *needed])
    libraries = {name for name in sys.modules if name.partition(".")[0] in LIBRARIES}
    return int(code), plugin.seconds, plugin.failed, libraries


def names_of(row: Row | None) -> tuple[str, ...]:
    """The names by which a test would be a copy of the row's table."""
    return () if row is None else row.table.names or (row.table.name,)


def prepare() -> None:
    """What every process shares: the checkout first on the path, no recorded traffic, no plugin that is not needed."""
    os.chdir(ROOT)
    sys.path[:] = [str(ROOT), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT / "tests")]
    os.environ["LOOP_INSPECTOR_CORPUS"] = str(ROOT / "no-recorded-traffic")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    storage = os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp(prefix="mutants-hypothesis-")
    atexit.register(shutil.rmtree, storage, ignore_errors=True)
    import _hypothesis_pytestplugin  # noqa: F401 - imported once here, not once a row
    import httpx  # noqa: F401
    import hypothesis.strategies  # noqa: F401
    import jsonschema_rs  # noqa: F401
    import pydantic  # noqa: F401
    import pytest_asyncio.plugin  # noqa: F401
    import textual.app  # noqa: F401
    import yaml  # noqa: F401

    gc.freeze()  # what all processes share need not be searched in each


def main() -> int:
    """Tries every row; the exit code says whether each was missed."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("words", nargs="*")
    asked.add_argument("--list", action="store_true")
    asked.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked.add_argument("--times", type=Path, metavar="REPORT", help="the JUnit report of a run of all tests")
    asked.add_argument("-v", "--verbose", action="store_true")
    options = asked.parse_args()
    prepare()
    began = time.monotonic()
    found: list[Row] | None = result(*forked(rows))
    if not found:
        print("the tables could not be read", file=sys.stderr)
        return 2
    chosen = [row for row in found if not options.words or any(word in row.title for word in options.words)]
    if options.list:
        print("\n".join(row.title for row in chosen))
        return 0
    survivors = run(chosen, options.jobs, options.verbose, reported(options.times) if options.times else {})
    print(f"{len(chosen)} rows in {time.monotonic() - began:.0f} s, {len(survivors)} that no behavioural test misses")
    for row, why in survivors:
        print(f"  {row.title}: {why}")
    return 1 if survivors else 0


def run(chosen: Sequence[Row], jobs: int, verbose: bool, took: dict[str, dict[str, float]]) -> list[tuple[Row, str]]:
    """The rows whose deletion no test notices, each with what happened instead. `took`: file -> test -> seconds."""
    survivors: list[tuple[Row, str]] = []
    for tests in dict.fromkeys(row.table.tests for row in chosen):
        if tests not in took:
            took[tests], why = baseline(tests)
            survivors += [(row, why) for row in chosen if why and row.table.tests == tests]
    broken = {row for row, _ in survivors}
    waiting = [row for row in chosen if row not in broken][::-1]
    running: dict[int, tuple[Row, Path]] = {}
    best: dict[Table, set[str]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            row = waiting.pop()
            tests, first = row.table.tests, frozenset(best.setdefault(row.table, set()))
            copies(str(ROOT / tests), frozenset(names_of(row)))  # once here, not once a row
            process, path = forked(lambda row=row, tests=tests, first=first: tried(tests, took[tests], row, first))
            running[process] = (row, path)
        process, status = os.wait()
        row, path = running.pop(process)
        outcome = result(process, path, status)
        if outcome is not None:
            best[row.table].update(test.partition("[")[0] for test in outcome[2])
            load(outcome[3])
        why = judged(outcome, verbose, row)
        if why:
            survivors.append((row, why))
    return survivors


def load(modules: Iterable[str]) -> None:
    """Imports what the tests of a row imported of the libraries, so that those of the next need not."""
    for name in sorted(modules - sys.modules.keys()):
        with suppress(Exception):  # a module that its library loads in another way only
            import_module(name)
    gc.freeze()


def reported(path: Path) -> dict[str, dict[str, float]]:
    """How long each test took by a JUnit report: file -> test -> seconds.

    A report names a test by its module and its name: `tests.turn.test_limits`, `test_a_cap[1]`.
    """
    took: dict[str, dict[str, float]] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        module = str(case.get("classname"))
        file = module.replace(".", "/") + ".py"
        took.setdefault(file, {})[f"{file}::{case.get('name')}"] = float(case.get("time") or 0)
    return took


def baseline(tests: str) -> tuple[dict[str, float], str]:
    """How long each test of a file takes with no row deleted, and why the file cannot be used, if it cannot."""
    if not (ROOT / tests).is_file():
        return {}, f"there is no {tests}"
    ran = result(*forked(lambda: tried(tests, {}, None)))
    if ran is None or ran[0] != pytest.ExitCode.OK:
        return {}, f"{tests} fails with no row deleted ({'it died' if ran is None else ran[2] or ran[0]})"
    load(ran[3])
    return ran[1], ""


def judged(ran: Outcome | None, verbose: bool, row: Row) -> str:
    """Why a row survived; empty where a test missed it."""
    if ran is None:
        return f"its tests died or took longer than {SECONDS} s"
    code, _, failed, _ = ran
    if code == pytest.ExitCode.TESTS_FAILED and failed:
        if verbose:
            print(f"{row.title}: {failed[0]}")
        return ""
    if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return f"{row.table.tests} passes without it"
    return f"{row.table.tests} could not be loaded without it (exit {code})"


if __name__ == "__main__":
    raise SystemExit(main())
