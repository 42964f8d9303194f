"""Every dialect under every scenario and many budgets: nothing that is cut is released, and nothing breaks."""

from __future__ import annotations

import pytest

from inspector.config.settings import Settings
from inspector.provider.dialect_lines import COLUMNS, cells, entries, table
from inspector.provider.dialect_output import document, sheet, text
from inspector.provider.dialect_rows import LOSE_REST, RUN_HELD, DialectRow, row_view, rows
from inspector.provider.dialects import DIALECTS, PEER_MEANINGS, PEER_WORDS, PEERS
from inspector.provider.scenarios import COMPLETE, SCENARIOS
from inspector.report.lines.spans import plain, text_of, width_of
from loop_core.judge.arguments import ArgumentShape, parse
from loop_core.judge.gate import Admission
from loop_core.turn.policy import STRICT
from loop_core.values import FINISHED, ToolCall
from loop_core.wire import wire
from loop_core.wire.profiles import PROFILES, choose
from loop_core.wire.serving import Moment
from tests.scenes.provider import table_rows
from tests.scenes.rows import share

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS)
BUDGETS = (1, 2, 7, 8, 9, 10, 12, 16, 17, 20, 33, 40, 64)
"""Before, at and after the beginning of a call, its name, its arguments, and its end."""


def rows_of(scenario: str, budget: int | None = None) -> list[DialectRow]:
    return [row for row in table_rows(scenario, budget) if isinstance(row, DialectRow)]


def meant(row: DialectRow) -> list[str | None]:
    """The arguments of the calls that were intended, in order."""
    return [part.arguments for part in row.play.scenario.parts if isinstance(part, ToolCall)]


def check(row: DialectRow) -> None:
    """What holds of every row under `strict`."""
    response, stop = row.exchange.response, row.judgement.stop.normalized
    broken = [finding.rule for finding in response.findings if finding.rule.startswith(("frame.", "body."))]
    assert not broken, (row.name, broken)
    assert row.exchange.profile.name == row.dialect.profile
    assert not row.runs_cut
    for verdict in row.verdicts:
        if verdict.admission is Admission.READY:  # then it is one of those that were intended, as it was intended
            assert parse(verdict.call.arguments).value in [parse(arguments).value for arguments in meant(row)]
            assert parse(verdict.call.arguments).shape is ArgumentShape.COMPLETE
            assert row.play.moment in COMPLETE or row.blind, row.name
    if row.play.moment not in COMPLETE and not row.blind:
        assert stop not in FINISHED or row.judgement.ending is not None, row.name
        assert row.decision not in (LOSE_REST, "finish", "run calls"), row.name


@each_scenario
def test_nothing_that_is_cut_is_finished_or_run(scenario: str) -> None:
    for row in rows_of(scenario):
        check(row)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("scenario", ["call-cut", "two-calls", "call-then-text", "thinking"])
def test_wherever_the_budget_ends(scenario: str, budget: int) -> None:
    chosen = tuple(share(DIALECTS[BUDGETS.index(budget) % 2 :: 2], budget))  # each with every other budget
    for row in rows(SCENARIOS[scenario], budget, chosen, settings=Settings(policy=STRICT)):
        if not isinstance(row, DialectRow):
            continue
        check(row)
        text_meant = "".join(getattr(part, "text", "") for part in row.play.scenario.parts)
        said = (row.exchange.response.text or "").partition("\n<tool_call>")[0]
        assert said in text_meant


def test_what_is_called_blind_is_blind() -> None:
    """A row that our judge sees through again must lose the excuse; and its moment must be one that is shown."""
    shown: set[tuple[str, Moment]] = set()
    for scenario in SCENARIOS:
        for row in rows_of(scenario):
            if row.blind:
                shown.add((row.name, row.play.moment))
                assert row.judgement.stop.normalized in FINISHED, row.name
                assert row.decision in (LOSE_REST, "run calls", "ask once more"), row.name
                if row.play.moment.value.startswith("cut"):
                    # Even then the operator is told: the count stands at the cap, or the text holds half a call.
                    assert {"judge.usage_at_cap"} & {finding.rule for finding in row.judgement.findings}, row.name
    assert shown == {(dialect.name, moment) for dialect in DIALECTS for moment in dialect.blind}


def test_the_names_are_unique_and_the_servers_known() -> None:
    assert len({dialect.name for dialect in DIALECTS}) == len(DIALECTS)
    for dialect in DIALECTS:
        assert dialect.api in PROFILES[dialect.profile].apis
        assert dialect.source
        assert dialect.title or not (dialect.says or dialect.quirks or dialect.call_form)


def test_the_address_gives_the_server_away_where_it_has_one() -> None:
    for row in rows_of("call-cut"):
        profile = PROFILES[row.dialect.profile]
        if profile.hosts or profile.urls or profile.ports:
            assert choose(row.dialect.api, row.exchange.url).profile.name == profile.name, row.exchange.url


@each_scenario
def test_a_row_opens_as_a_session(scenario: str) -> None:
    for row in rows_of(scenario):
        view = row_view(row)
        assert [facts.judgement.stop for facts in view.responses] == [row.judgement.stop]
        assert len(view.turns) == 1
        assert row.exchange.request is not None
        assert row.exchange.request.max_tokens == row.play.budget
        tools = [] if wire(row.dialect.api).no_tools else ["write_file", "page_oncall"]
        assert [tool.name for tool in row.exchange.request.tools] == tools


def test_another_policy_runs_what_strict_holds() -> None:
    told = [row for row in table_rows("call-cut", None, "pi-presence") if isinstance(row, DialectRow)]
    strict = {row.name: row for row in rows_of("call-cut")}
    assert {row.decision for row in told} == {RUN_HELD, LOSE_REST}
    for row in told:
        held = bool(strict[row.name].verdicts)
        assert row.runs_cut is held, row.name


# -- how it is shown -------------------------------------------------------------------------------------------------


@each_scenario
def test_the_table_fits_and_names_every_dialect(scenario: str) -> None:
    told, first = table_rows(scenario), [*SCENARIOS].index(scenario) % 2
    for width, each in ((40, False), (80, False), (80, True), (120, False), (170, True), (260, False))[first::2]:
        assert all(width_of(line) <= width for line in table(told, width, each))
        shown = " ".join(text(told, STRICT, width, each).split())
        assert all(dialect.name.partition("/")[2] in shown for dialect in DIALECTS)


@each_scenario
def test_rows_are_put_together_only_where_every_cell_is_the_same(scenario: str) -> None:
    told = table_rows(scenario)
    put = entries(told)
    assert sorted(row.name for entry in put for row in (entry.row, *entry.equal_rows)) == sorted(
        row.name for row in told)
    for entry in put:
        assert len(cells(entry.row)) == len(COLUMNS)
        for other in entry.equal_rows:
            assert other.dialect.api == entry.row.dialect.api
            assert cells(other)[1:] == cells(entry.row)[1:]


@each_scenario
def test_the_sheet_says_everything_of_a_row(scenario: str) -> None:
    for row in table_rows(scenario):
        shown = plain(sheet(row).lines)
        assert row.dialect.name in shown
        assert row.dialect.source in shown
        if isinstance(row, DialectRow):
            assert row.call.value in shown
            assert row.decision in shown
            assert all(what in shown for what in row.losses)
            assert row.blind in shown
            assert all(peer.word in shown for peer in row.peers)


@each_scenario
def test_the_document_holds_every_row(scenario: str) -> None:
    told = table_rows(scenario)
    made = document(told, SCENARIOS[scenario], STRICT)
    assert made["schema"] == "loop-inspector/providers/1"
    assert [row["dialect"] for row in made["rows"]] == [dialect.name for dialect in DIALECTS]
    keys = {frozenset(row) for row in made["rows"] if row["told"]}
    assert len(keys) <= 1  # one shape


def test_the_heading_counts_those_who_are_deceived() -> None:
    shown = text(table_rows("call-cut"), STRICT, 120)
    # By their word: vllm, vllm+empty, openrouter, generic+router, dynamo, generic+leak, and two of Responses.
    assert "looks finished: 8 by the provider's word, 0 after this program's check" in shown
    narrow = [text_of(line) for line in table(table_rows("call-cut"), 80)]
    assert "openai_chat" in narrow
    assert "ollama_chat" in narrow


# -- the libraries ---------------------------------------------------------------------------------------------------


def test_every_word_of_a_library_has_a_meaning() -> None:
    for answers in PEER_WORDS.values():
        assert len(answers) == len(PEERS)
        for word in answers:
            assert all(not each or each in PEER_MEANINGS for each in ([word] if isinstance(word, str) else word))


def test_every_answer_of_a_library_is_shown_somewhere() -> None:
    seen: set[tuple[str, str]] = set()
    for scenario in SCENARIOS:
        for row in rows_of(scenario):
            if row.peers:
                raw = row.exchange.response.raw_stop_reason
                key = raw or ("(error)" if row.exchange.response.error else "(absent)")
                seen |= {(owner, key) for owner in (row.dialect.profile, row.dialect.api) if (owner, key) in PEER_WORDS}
    assert seen == set(PEER_WORDS)
