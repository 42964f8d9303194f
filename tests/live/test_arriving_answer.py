"""An answer while it streams: however it is cut, what is shown is what will be made of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.live.growing_views import GrowingSheet
from inspector.live.live_lines import arrival_text
from inspector.live.stepper import ArrivingAnswer
from inspector.report.lines.spans import Span, Tone, paragraphs, text_of
from loop_core.client.streaming import PendingSeam
from loop_core.turn.continuation import Method, SeamRule, Segment
from loop_core.turn.seam import join
from loop_core.values import Stop, ToolCall
from loop_core.wire import decode
from tests.scenes.live import answer
from tests.scenes.provider import CALLING

TEXT = "Über the lázy dog — and 🙂 goes on.\nA second line, \tand so on"


@pytest.mark.parametrize("api", CALLING)
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_what_has_come_is_what_the_decoder_reads(api: str, size: int) -> None:
    calls = () if api in ("gemini_generate", "ollama_chat") else (
        ToolCall("call_1", "weather", '{"city":"Oslo"}', closed=True),)
    body = b"".join(answer(api, TEXT, Stop.TOOL_CALL if calls else Stop.END_TURN, *calls))
    arriving = ArrivingAnswer(api, 0, ())
    arriving.take_head(200, ())
    seen = ""
    for at in range(0, len(body), size):
        arriving.take_data(body[at : at + size], float(at))
        if at % 3 == 0:
            assert arriving.read()
            assert arriving.text.startswith(seen)
            seen = arriving.text
    arriving.read()
    assert arriving.text == (decode(api, body).text or "") == TEXT
    assert arriving.call == ('{"city":"Oslo"}' if calls else "")
    assert (arriving.size, arriving.read()) == (len(body), False)


def test_the_time_of_an_answer_under_way_is_written_as_that_of_one_that_is_over() -> None:
    arriving = ArrivingAnswer("openai_chat", 0, ())
    for ms, written in ((320.0, "320 ms"), (1_500.0, "1.5 s"), (125_000.0, "2 min 5 s")):
        arriving.take_data(b"", ms)
        assert arrival_text(arriving) == f"+0 chars {written}"


def test_bytes_of_no_format_show_no_text_and_break_nothing() -> None:
    arriving = ArrivingAnswer("openai_chat", 0, ())
    for data in (b"<html>", b"no", b"data: {}"):
        arriving.take_data(data, 1.0)
        arriving.read()
    assert arriving.text == ""


PLAIN = st.text(alphabet="ab \n", max_size=60)
SEGMENT = st.builds(
    lambda text, method, anchor, stripped: Segment(text, method, anchor, stripped if method is Method.PREFILL else ""),
    PLAIN, st.sampled_from([Method.HINT, Method.ANCHOR, Method.PREFILL, Method.REPAIR, Method.ECHO, Method.POLL]),
    PLAIN, st.sampled_from(["", " ", "\n"]))


@given(st.lists(SEGMENT, max_size=3), SEGMENT, st.text(alphabet="ab \n", max_size=400), st.booleans(),
       st.sampled_from(list(SeamRule)))
@settings(max_examples=125, deadline=None)
def test_a_seam_that_is_shown_while_text_comes_is_the_one_that_is_made(
    before: list[Segment], coming: Segment, text: str, repeats: bool, rule: SeamRule
) -> None:
    if repeats and before:
        text = join(before, rule).text + text
    joining = PendingSeam(before, coming, rule)
    for size in range(0, len(text) + 1, 5):
        part = text[:size]
        whole, added = joining.at(part)
        expected = join((*before, Segment(part, coming.method, coming.anchor, coming.stripped)), rule)
        assert whole == expected
        start = expected.seams[-1].at if before else 0
        assert added == expected.text[start:]


WORDS = "the lamp went out, and the keeper slept "
WRAPPED = ("{w}{r}", "Sure, here it is:\n{w}{r}", "<last>{w}</last>{r}", "<last>{w}{r}</last>", "```\n{w}{r}\n```",
           '"{w}"{r}', "I'm sorry. {r}", "{r}", "{r}</last>")


@pytest.mark.parametrize("wrapper", WRAPPED)
@pytest.mark.parametrize("method", [Method.ANCHOR, Method.AGAIN])
def test_a_quotation_that_is_wrapped_is_shown_as_it_will_be_cut(wrapper: str, method: Method) -> None:
    first = "Once it was late: " + WORDS
    before = [Segment(first)]
    if method is Method.AGAIN:
        before.append(Segment("Sure, I can go on with it for a long time.", Method.ANCHOR, first[-40:]))
    joining = PendingSeam(before, Segment("", method, first[-40:]), SeamRule.CAREFUL)
    text = wrapper.format(w=first[-40:], r="until morning. " * 40)
    middle = range(120, max(120, len(text) - 20), 17)  # what is decided is decided near the beginning or the end
    for size in (*range(min(120, len(text))), *middle, *range(max(120, len(text) - 20), len(text) + 1)):
        whole, _ = joining.at(text[:size])
        assert whole == join((*before, Segment(text[:size], method, first[-40:])))


@given(st.lists(st.text(alphabet="ab \n\t\r\x1b\u202e", max_size=30), max_size=12), st.integers(1, 5))
@settings(max_examples=75, deadline=None)
def test_a_text_that_grows_is_laid_out_as_one_that_is_whole(pieces: list[str], every: int) -> None:
    pieces = [piece.replace("\r", "") for piece in pieces]  # a line end that is cut in two shows its first half
    head, foot = [(Span("head"),)], [(Span("foot", Tone.DIM),)]
    sheet = GrowingSheet(head, "")
    shown: list[str] = []
    for number, piece in enumerate(pieces):
        sheet.grow(piece, foot)
        assert text_of(sheet.line(len(sheet) - 1)) == "foot"
        lines = [text_of(sheet.line(at)) for at in range(len(sheet))]
        assert lines[: sheet.stable] == shown[: sheet.stable], "what is said to be stable is as it was"
        if number % every == 0:
            sheet.note_layout()
            shown = lines
    text = "".join(pieces)
    if text and "\t" not in text:
        whole = [text_of(line) for line in paragraphs(text)]
        assert [text_of(sheet.line(at)) for at in range(1, len(sheet) - 1)] == whole
    assert sheet.copy_text() == text


def test_a_long_paragraph_without_an_end_is_broken_as_it_will_be() -> None:
    words = "".join(f"word{number} " for number in range(2_000))
    sheet = GrowingSheet([], "")
    for at in range(0, len(words), 37):
        sheet.grow(words[at : at + 37])
    assert [text_of(line) for line in sheet.lines] == [text_of(line) for line in paragraphs(words)]


def test_sections_stand_one_below_the_other() -> None:
    sheet = GrowingSheet([(Span("head"),)], "")
    for kind, text in (("thinking", "Hm. "), ("thinking", "Yes.\n"), ("text", "It is.")):
        if kind not in [text_of(line) for line in sheet.lines]:
            sheet.section((Span(kind),))
        sheet.grow(text)
    assert [text_of(line) for line in sheet.lines] == ["head", "", "thinking", "Hm. Yes.", "", "text", "It is."]
