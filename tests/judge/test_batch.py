"""Which held call is which: told by tool and by the arguments that had arrived whole."""

from __future__ import annotations

from loop_core.judge import gate
from loop_core.judge.gate import Verdict, admit_all
from loop_core.values import Stop, ToolCall
from tests.scenes.costs import IN_PROPORTION, growth
from tests.scenes.rows import each_row
from tests.scenes.turns import call, judgement_of


def cut_batch(*calls: ToolCall) -> tuple[Verdict, ...]:
    return admit_all(calls, judgement_of(Stop.MAX_TOKENS))


A, B = '{"path": "a", "n": 1}', '{"path": "b", "n": 1}'


def test_calls_of_one_tool_are_told_by_the_arguments_in_which_they_differ() -> None:
    assert gate.held_names(cut_batch(call(A), call(B))) == ('write (path "a")', 'write (path "b")')
    assert gate.held_names(cut_batch(call(A), call(B, "read"))) == ("write", "read")
    assert gate.held_names(cut_batch(call(A), call(A, id="c2"))) == ("write",), "the same call twice is one"
    assert gate.held_names(cut_batch(call(A, ""))) == ("a call whose name did not arrive",)
    assert gate.held_names(cut_batch(call("{"), call('{"'))) == ("write",), "nothing tells them apart"
    assert gate.held_names(cut_batch(call(A), ToolCall(None, "", ""))) == ("write",), "a phantom is no call"


def test_the_last_argument_of_whole_ones_tells_calls_apart_too() -> None:
    """Only the last member of cut arguments may be incomplete."""
    broken = cut_batch(call('{"path": "a"}'), call('{"path": "b"}'), call('{"path": "c", "text": "It w'))
    assert gate.held_names(broken) == ('write (path "a")', 'write (path "b")', 'write (path "c")')
    assert [each.call for each in gate.missing_calls(broken, [call('{"path": "b"}'), call('{"path": "b"}')])] == [
        broken[0].call, broken[2].call]


@each_row(("raw", "known"), [
    ('{"path": "b", "text": "It was', 'write (path "b")'),
    ('{"path": "b", "te', 'write (path "b")'),
    ('{"path": "b,\\"c", ', 'write (path "b,\\"c")'),
    ('{"path": "b', "write"),  # it may have been longer
    ('{"n": 12', "write"),
    ('{"at": [1, 2], "n": 12', "write"),  # no plain value
    ('{"at": [1, {"n": 2}], "path": "b", "te', 'write (path "b")'),
    ("", "write"),
])
def test_of_cut_arguments_only_those_count_that_had_arrived_whole(raw: str, known: str) -> None:
    assert gate.held_names(cut_batch(call('{"path": "a", "n": 3}'), call(raw)))[1] == known


def test_what_did_not_come_again_is_missing() -> None:
    broken = cut_batch(call(A), call(B), call("{}", "read"))
    assert gate.missing_calls(broken, [call(B), call("{}", "read"), call(A)]) == ()
    lost = gate.missing_calls(broken, [call(B), call("{}", "other")])
    assert [each.call for each in lost] == [call(A), call("{}", "read")]
    assert gate.missing_calls(cut_batch(call(A, "")), []) == (), "without a name nothing can be known again"


def test_one_call_stands_for_one() -> None:
    broken = cut_batch(call('{"path": "a'), call('{"path": "b'))
    assert len(gate.missing_calls(broken, [call(A)])) == 1
    assert gate.missing_calls(broken, [call(A), call(B)]) == ()


def test_a_sibling_that_came_still_tells_the_others() -> None:
    first, second = cut_batch(call(A), call(B))
    assert gate.held_names([first], [second]) == ('write (path "a")',)
    assert gate.missing_calls([first], [call(B)], [second]) == (first,)
    assert gate.missing_calls([first], [call(A)], [second]) == ()
    assert gate.missing_calls([first], [call(B)]) == (), "alone it is known by its tool"


def test_a_long_text_is_no_name() -> None:
    long = '{"path": "%s", "n": 1}' % ("x" * 201)
    assert gate.held_names(cut_batch(call(long), call(A)))[0] == "write"


def test_calls_are_told_apart_in_linear_time() -> None:
    def many(count: int) -> tuple[Verdict, ...]:
        return cut_batch(*(call(f'{{"path": "{number}", "mode": 1}}') for number in range(count)))

    assert gate.held_names(many(3))[0] == 'write (path "0")', "an argument that all calls share tells none apart"
    assert growth(gate.held_names, many, 400) < IN_PROPORTION


def test_calls_that_came_again_are_matched_in_linear_time() -> None:
    def many(count: int) -> tuple[tuple[Verdict, ...], list[ToolCall]]:
        broken = cut_batch(*(call(f'{{"path": "{number}", "text": "x') for number in range(count)))
        return broken, [call(f'{{"path": "{number}", "text": "xy"}}') for number in reversed(range(count))]

    assert gate.missing_calls(*many(30)) == ()
    assert growth(lambda each: gate.missing_calls(*each), many, 150) < IN_PROPORTION
