"""The file formats that can be read, one file and one line each, in the order in which they are asked."""

from __future__ import annotations

from inspector.sessions.importers.body import BodyImporter
from inspector.sessions.importers.har import HARImporter
from inspector.sessions.importers.known import KnownImporter
from inspector.sessions.importers.native import NativeImporter
from inspector.sessions.importers.pairs import PairsImporter
from inspector.sessions.raw import Importer

IMPORTERS: tuple[Importer, ...] = (
    HARImporter(),
    NativeImporter(),
    KnownImporter(),
    PairsImporter(),
    BodyImporter(),
)
CERTAIN = 100
HEAD = 1 << 16


def choose(head: bytes, path: str) -> Importer | None:
    """The importer that is surest of a file that begins with `head`; None where none knows it."""
    best, best_score = None, 0
    for importer in IMPORTERS:
        score = importer.sniff(head, path)
        if score >= CERTAIN:
            return importer
        if score > best_score:
            best, best_score = importer, score
    return best
