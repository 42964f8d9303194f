"""Joins the readings of files into one recording: finds their turns, and what one file tells about another."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from inspector.sessions import redact
from inspector.sessions.build import mask_seams
from inspector.sessions.copies import OpenedFile, is_spread
from inspector.sessions.recording import Exchange, Input, Recording, TurnPlace, TurnRecord
from inspector.sessions.thread import thread


def join_files(
    files: Sequence[OpenedFile],
    thread: Callable[[list[Exchange], Sequence[Sequence[int]]], tuple[TurnRecord, ...]] = thread,
    mask_seams: Callable[
        [list[Exchange], Sequence[TurnRecord], Mapping[str, redact.Counts]], list[Exchange]] = mask_seams,
) -> Recording:
    """The readings, with turns found: within each file, and across files that share a conversation."""
    inputs: list[Input] = []
    exchanges: list[Exchange] = []
    groups: dict[str, list[int]] = {}
    for source, found in files:
        start = len(exchanges)
        exchanges.extend(found)
        inputs.append(source)
        if found:
            spread = is_spread((source, found))
            group = f"folder {os.path.dirname(source.path)}" if spread else f"file {len(inputs)}"
            groups.setdefault(group, []).extend(range(start, len(exchanges)))
    _settle(exchanges, inputs)
    turns = thread(exchanges, list(groups.values()))
    _inherit(exchanges, turns)
    clean = mask_seams(exchanges, turns, {input_file.path: input_file.masked for input_file in inputs})
    return Recording(tuple(inputs), tuple(clean), turns)


def turns_of(one: OpenedFile) -> tuple[TurnRecord, ...]:
    """The turns of one file that is read alone."""
    source, found = one
    exchanges = list(found)
    _settle(exchanges, [source])
    return thread(exchanges, [range(len(exchanges))])


def _settle(exchanges: list[Exchange], inputs: Sequence[Input]) -> None:
    if any(exchange.recorder is not None for exchange in exchanges):
        # Only for transcripts: this import loads a wire format and costs 2.4 ms of the start.
        from inspector.sessions.transcripts.ending_rules import settle

        settle(exchanges, inputs)


def _inherit(exchanges: list[Exchange], turns: Sequence[TurnRecord]) -> None:
    """Gives a polled response the request that it answers, whose tools and cap hold for it too."""
    for link in (link for turn in turns for link in turn.links):
        one = exchanges[link.index]
        if one.request is None and link.place is TurnPlace.RESUME and link.parent is not None:
            original = exchanges[link.parent].request
            if original is not None:
                request = replace(original, previous_id=one.response.id, stream=False)
                exchanges[link.index] = replace(one, request=request)
