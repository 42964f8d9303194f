"""Where cells stand: each has one place, and every place one cell, whatever the axes and the width."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.report.lines.glyphs import MARKED
from inspector.report.lines.spans import Span, Tone, text_of
from inspector.whatif.grid import NAMES, Axis
from inspector.whatif.heat import CURSOR, GAP, plane

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def axes_of(sizes):
    return tuple(Axis(name, tuple(range(1, size + 1))) for name, size in zip(NAMES, sizes, strict=False))


def laid(sizes, width):
    axes = axes_of(sizes)
    total = 1
    for size in sizes:
        total *= size
    marks = [Span(f"c{number}") for number in range(total)]
    return plane(axes, marks, width), marks


@settings(deadline=None)
@given(SIZES, st.integers(20, 90))
def test_every_cell_stands_at_its_place_and_is_found_there(sizes, width):
    made, marks = laid(sizes, width)
    for cell, mark in enumerate(marks):
        x, y = made.place(cell)
        assert text_of(made.line(y, marks))[x:].split(" ")[0] == mark.text
        assert {made.cell_at(at, y) for at in (x, x + len(mark.text), x + made.cell_width - 1)} == {cell}


@settings(deadline=None)
@given(SIZES, st.integers(20, 90))
def test_no_other_place_has_a_cell(sizes, width):
    made, marks = laid(sizes, width)
    found = {made.cell_at(x, y) for y in range(-1, made.height + 1) for x in range(0, width, made.cell_width)}
    assert found - {None} <= set(range(len(marks)))
    assert {made.cell_at(x, -1) for x in range(width)} == {made.cell_at(x, made.height) for x in range(width)} == {None}
    assert made.cell_at(made.margin - 1, made.place(0)[1]) is None


def test_moving_stops_at_the_edges_and_goes_on_in_the_next_block():
    made, _ = laid([2, 2, 3], 80)  # cells 0 to 5 in the first block, two rows of three; 6 to 11 in the second
    assert [made.neighbour(cell, *by) for cell, by in (
        (0, (1, 0)), (0, (-1, 0)), (2, (1, 0)), (0, (0, 1)), (4, (0, 1)), (7, (0, -1)), (1, (0, -1)), (10, (0, 5)),
    )] == [1, 0, 2, 3, 7, 4, 1, 10]


def test_one_axis_goes_down():
    made, marks = laid([3], 80)
    assert [text_of(made.line(y, marks)).split() for y in range(made.height)] == [
        ["attempts"], ["1", "c0"], ["2", "c1"], ["3", "c2"]]
    assert made.neighbour(0, 1, 0) == 0
    assert made.neighbour(0, 0, 1) == 1


def test_a_cell_is_named_by_the_heading_of_its_chunk():
    made, marks = laid([2, 5], len("attempts") + 2 * GAP + 2 * (len("c0" + MARKED + CURSOR) + GAP))
    assert made.cells_in_line == 2
    for cell in range(10):
        heading = text_of(made.line(made.header_line(made.place(cell)[1]), marks))
        assert heading[made.place(cell)[0] :].split()[0] == str(cell % 5 + 1)


@pytest.mark.parametrize(("cell", "ends"), [(0, "c0▾◆◀"), (1, "c1◇")])
def test_the_cursor_and_the_best_cells_have_their_glyphs(cell, ends):
    made, marks = laid([2], 80)
    assert text_of(made.line(made.place(cell)[1], marks, here=0, best={0: "▾◆", 1: "◇"})).rstrip().endswith(ends)


@pytest.mark.parametrize("glyphs", [("✓", Tone.OK), ("■", Tone.ERROR)])
def test_a_state_colours_its_glyph_and_no_number(glyphs):
    made, _ = laid([1], 80)
    line = made.line(made.place(0)[1], [Span(f"{glyphs[0]} 3/7", glyphs[1])])
    assert [(span.text, span.role) for span in line[1:3]] == [glyphs, (" 3/7", Tone.PLAIN)]


def test_a_screen_has_one_block_however_many_columns_there_are():
    made, _ = laid([2, 40], None)
    assert made.height == 4
    assert made.width == made.margin + 40 * made.cell_width
    assert [made.scrolls(y) for y in range(4)] == [False, True, True, True]
    assert [made.heads_columns(y) for y in range(4)] == [False, True, False, False]
    assert made.cell_at(made.place(79)[0], 3) == 79
