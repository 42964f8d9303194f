"""A cost is shown where prices and usage are known, and never guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from inspector import cli
from inspector.config import Config, load, price_table
from inspector.config.settings import NO_PRICES, Price, PriceTable, Settings, assignments, settings_of
from inspector.report import explain
from inspector.report.explain_document import document
from inspector.report.facts import View
from inspector.report.lines.header import spent_title
from inspector.report.lines.response import response
from inspector.report.lines.spans import plain, text_of
from inspector.report.run_answers import answer_at
from inspector.report.times_and_costs import response_cost, session_cost, turn_cost
from loop_core.errors import CallerError
from tests.scenes.recordings import ASKS, HINT, MESSAGES, chat, lines, message, pair_of, show, user
from tests.scenes.rows import each_row

MINI = {"input": 1.0, "output": 10.0}
TABLE = price_table({"m-1": {**MINI, "cached_input": 0.1}}, "USD")


def show_costs(*exchanges: dict[str, Any], table: PriceTable = TABLE, **settings: Any) -> View:
    return show(*exchanges, settings=Settings(prices=table, **settings))


def exchange(**usage: Any) -> dict[str, Any]:
    return pair_of(ASKS, {**chat("Done."), "usage": usage} if usage else chat("Done.", tokens=None))


def cost_of(one: dict[str, Any], prices: Mapping[str, Any]) -> tuple[float | None, str]:
    view = show_costs(one, table=price_table(prices, ""))
    return response_cost(view.responses[0], view.prices)


def test_tokens_are_paid_by_the_million() -> None:
    assert cost_of(exchange(prompt_tokens=200_000, completion_tokens=30_000), {"m-1": MINI}) == (0.5, "")


CACHED = {"prompt_tokens": 200_000, "completion_tokens": 30_000, "prompt_tokens_details": {"cached_tokens": 100_000}}
THOUGHT = {"prompt_tokens": 0, "completion_tokens": 30_000, "completion_tokens_details": {"reasoning_tokens": 20_000}}


@each_row(("usage", "prices", "amount", "why"), [
    (CACHED, {**MINI, "cached_input": 0.1}, 0.1 + 0.01 + 0.3, ""),
    (CACHED, MINI, None, "its model has no price for cached input"),
    (THOUGHT, MINI, 0.3, ""),
    (THOUGHT, {**MINI, "reasoning": 5.0}, 0.1 + 0.1, ""),
    (CACHED, {**MINI, "cached_input": 0.1, "reasoning": 5.0}, None, "its reasoning tokens were not reported"),
    ({}, MINI, None, "its tokens were not reported"),
    ({"completion_tokens": 9}, MINI, None, "its tokens were not reported"),
    ({"prompt_tokens": 9}, MINI, None, "its tokens were not reported"),
])
def test_a_cost_needs_a_price_for_every_kind_of_token(
    usage: dict[str, Any], prices: dict[str, float], amount: float | None, why: str
) -> None:
    found = cost_of(exchange(**usage), {"m-1": prices})
    assert found[1] == why
    assert found[0] == (None if amount is None else pytest.approx(amount))


def test_what_is_written_to_a_cache_has_a_price_of_its_own() -> None:
    usage = {"input_tokens": 1_000, "output_tokens": 100, "cache_read_input_tokens": 10_000,
             "cache_creation_input_tokens": 2_000}
    one = pair_of([user("hi")], {**message([], "end_turn"), "usage": usage}, url=MESSAGES, max_tokens=9)
    prices = {**MINI, "cached_input": 0.1}
    assert cost_of(one, {"claude-*": prices}) == (None, "its model has no price for cache write")
    view = show_costs(one)
    assert "cached 10,000 · written to the cache 2,000" in plain(response(view, view.responses[0]).lines)
    amount, why = cost_of(one, {"claude-*": {**prices, "cache_write": 1.25}})
    assert (amount, why) == (pytest.approx((1_000 + 1_000 + 2_500 + 1_000) / 1e6), "")


def test_a_model_that_the_table_does_not_name_has_no_price() -> None:
    one = exchange(prompt_tokens=9, completion_tokens=9)
    assert cost_of(one, {"m-2": MINI}) == (None, "the table has no price for m-1")
    assert cost_of(one, {}) == (None, "the table has no price for m-1")


def test_the_nearest_name_of_a_model_goes_first() -> None:
    prices = {"*": 1.0, "gpt-*": 2.0, "gpt-5*": 3.0, "gpt-5": 4.0, "gpt": 5.0}
    table = PriceTable(tuple((name, Price(value, value)) for name, value in prices.items()))
    found = {model: price.input if (price := table.of(model)) else None
             for model in ("gpt-5", "gpt-5-mini", "gpt-4", "gpt", "other")}
    assert found == {"gpt-5": 4.0, "gpt-5-mini": 3.0, "gpt-4": 2.0, "gpt": 5.0, "other": 1.0}
    assert table.of(None) is None
    assert NO_PRICES.of("gpt-5") is None


def test_the_response_names_the_model_before_the_request_does() -> None:
    body = {**chat("Done."), "model": "m-1-2026", "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}}
    one = pair_of(ASKS, body)
    assert cost_of(one, {"m-1": MINI}) == (1.0, "")
    assert cost_of(one, {"m-1": MINI, "m-1-*": {"input": 2.0, "output": 0.0}}) == (2.0, "")


def test_sums_say_of_how_many_responses_they_are() -> None:
    view = show_costs(pair_of(ASKS, chat("Done.", tokens=100)), pair_of([user("other")], chat("Done.", tokens=None)))
    assert session_cost(view) == (pytest.approx((9 + 1_000) / 1e6), 1, 2)
    assert turn_cost(view, view.turns[0]) == (pytest.approx((9 + 1_000) / 1e6), 1, 1)
    assert turn_cost(view, view.turns[1]) is None
    text = explain.text(view)
    assert "\ncost: 0.0010 USD for 1 of 2 responses; unknown for the others\n" in text
    assert "\n  cost 0.0010 USD\n" in text
    assert text.count("cost") == 2


def test_views_and_the_document_have_costs() -> None:
    view = show_costs(pair_of(ASKS, chat("Done.", tokens=100)), pair_of([user("other")], chat("Done.", tokens=None)))
    told = plain(response(view, view.responses[0]).lines)
    assert "cost           0.0010 USD · turn 0.0010 USD · session 0.0010 USD for 1 of 2 responses" in told
    told = plain(response(view, view.responses[1]).lines)
    assert "cost           not known: its tokens were not reported · session" in told
    found = document(view)
    assert found["responses"][0]["cost"] == {"amount": 0.001009, "currency": "USD"}
    assert "cost" not in found["responses"][1]
    assert found["turns"][0]["cost"] == {"amount": 0.001009, "currency": "USD", "priced": 1, "responses": 1}
    assert "cost" not in found["turns"][1]
    assert found["cost"] == {"amount": 0.001009, "currency": "USD", "priced": 1, "responses": 2}


def test_the_cost_of_a_turn_stands_above_its_gauges() -> None:
    view = show_costs(pair_of(ASKS, chat("Done.", tokens=100)), pair_of([user("other")], chat("Done.", tokens=None)))
    assert [text_of(spent_title(view, turn)) for turn in view.turns] == ["SPENT  0.0010 USD", "SPENT"]
    part = show_costs(pair_of(ASKS, chat("One", "length", tokens=100)),
                      pair_of([*ASKS, {"role": "assistant", "content": "One"}, user(HINT)], chat("Two", tokens=None)))
    assert text_of(spent_title(part, part.turns[0])) == "SPENT  ≥ 0.0010 USD"
    plain_view = show(pair_of(ASKS, chat("Done.", tokens=100)))
    assert text_of(spent_title(plain_view, plain_view.turns[0])) == "SPENT"


def test_without_a_table_nothing_speaks_of_costs() -> None:
    view = show(pair_of(ASKS, chat("Done.", tokens=100)))
    assert "cost" not in explain.text(view)
    assert "cost" not in json.dumps(document(view))
    assert "cost" not in plain(response(view, view.responses[0]).lines)


def test_a_simulated_answer_costs_nothing() -> None:
    view = show_costs(pair_of(ASKS, chat("Water, fire and earth. " * 20, tokens=100)), simulate=True, max_tokens=20)
    facts = answer_at(view, 1)
    assert facts is not None
    assert facts.simulated
    assert response_cost(facts, view.prices) == (None, "no provider was asked")


def test_prices_change_no_run_and_stay_with_what_is_set() -> None:
    settings = Settings(prices=TABLE)
    assert settings == Settings()
    assert assignments(settings) == {}
    assert settings_of({"max_tokens": "9"}, settings).prices is TABLE


@each_row(("amount", "words"), [
    (0, "0.0000 USD"), (0.00002, "0.000020 USD"), (0.01234, "0.0123 USD"), (1234.5, "1,234.5000 USD"),
])
def test_an_amount_is_written_with_its_currency(amount: float, words: str) -> None:
    assert TABLE.amount_text(amount) == words
    assert PriceTable().amount_text(1.0) == "1.0000"


# -- the configuration -----------------------------------------------------------------------------------------------


def load_config(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load({"LOOP_INSPECTOR_CONFIG": str(path)})


def test_the_table_is_read_from_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = load_config(tmp_path, 'currency = "EUR"\n[prices."m.1-x"]\ninput = 1\noutput = 2.5\ncached_input = 0.5\n')
    assert found.settings.prices == PriceTable((("m.1-x", Price(1.0, 2.5, 0.5)),), "EUR")
    assert load_config(tmp_path, 'currency = "EUR"').prices is NO_PRICES


@pytest.mark.parametrize(("text", "says"), [
    ('[prices."m"]\ninput = 1', "prices.m.output: field required"),
    ('[prices."m"]\ninput = -1\noutput = 1', "prices.m.input: input should be greater than or equal to 0"),
    ('[prices."m"]\ninput = inf\noutput = 1', "prices.m.input: input should be"),
    ('[prices."m"]\ninput = "1"\noutput = 1', "prices.m.input: input should be a valid number"),
    ('[prices."m"]\ninput = 1\noutput = 1\ncached = 1',
     "prices.m.cached: there is no such value; did you mean cached_input?"),
    ("prices = 3", "prices: input should be a valid dictionary"),
])
def test_a_mistake_in_the_table_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CallerError) as raised:
        load_config(tmp_path, text)
    assert says in str(raised.value)


def test_the_commands_use_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOOP_INSPECTOR_CONFIG", str(tmp_path / "own.toml"))
    (tmp_path / "own.toml").write_text('currency = "EUR"\n[prices."m-*"]\ninput = 1\noutput = 10\n')
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(pair_of(ASKS, chat("Done.", tokens=100))))

    def run(*words: str) -> str:
        with suppress(SystemExit):
            cli.main([*words], standalone_mode=False)
        return capsys.readouterr().out

    assert "cost: 0.0010 EUR" in run("explain", str(path))
    assert json.loads(run("explain", str(path), "--json"))["cost"]["currency"] == "EUR"
    assert "prices.m-* = input 1.0, output 10.0" in run("config")
    assert "cost: 0.0010 EUR" in run("export", str(path), "--to", "text", "--out", "-")
