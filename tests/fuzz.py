"""Puts odd values and broken bytes into files of every format, and reads them every way: nothing may be raised.

    python tests/fuzz.py --seconds 30 --seed 1
    python tests/fuzz.py --every pi          every JSON value in every place of one format, and nothing at random

Each run is one file that is opened, explained (text, JSON) and replayed; some are tuned and exported too. What raises
is told with the file that made it, and the exit code is 1. The same seed makes the same files in the same order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["LOOP_INSPECTOR_CONFIG"] = ""
os.environ.setdefault("LOOP_INSPECTOR_DATA", tempfile.mkdtemp(prefix="loop-inspector-fuzz."))

from inspector import export
from inspector.config.settings import Settings, settings_of
from inspector.export import FORMS
from inspector.replay import replay
from inspector.replay.case import Case, open_case
from inspector.report.explain import text
from inspector.report.explain_document import document
from inspector.report.facts import View, view
from inspector.sessions import open_paths
from inspector.sessions.recording import Recording
from inspector.whatif.grid import GridRequest
from inspector.whatif.grid_run import tune
from inspector.whatif.policies import matrix
from loop_core.errors import LoopError
from tests.scenes.shapes import EVERY, SHAPES, Shape, places, put

COSTLY = 8
"""One file of so many is tuned, laid under all policies and exported in every form."""


SLOW = 20
"""Seconds after which a small file has hung."""


def _hangs(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"nothing after {SLOW} s")


CONTINUED_ONCE = settings_of({"continuation_max_attempts": "1", "simulate": "yes"}, Settings())


def read(path: str) -> tuple[Case, View]:
    """A file, opened, explained in both forms and run again."""
    return explain(open_paths([path]))


def explain(loaded: Recording) -> tuple[Case, View]:
    """What was opened, explained in both forms and run again."""
    case = open_case(loaded)
    shown = view(replay(case, Settings()))
    text(shown).encode("utf-8", "backslashreplace")
    json.dumps(document(shown))
    view(replay(case, CONTINUED_ONCE))
    return case, shown


def leave(case: Case, shown: View) -> None:
    """Every further way: a grid, all policies, every form of export. A form may refuse in one clear line."""
    tune(case, GridRequest((), None).grid(case, Settings()), 1, None, Event().is_set)
    matrix(case, Settings(), [])
    for form in FORMS:
        try:
            for content in export.form_files(shown, form).values():
                export.encode_file(content)
        except LoopError:
            continue


def every(only: str | None) -> Iterator[tuple[str, bytes]]:
    """Every value in every place."""
    for shape in SHAPES:
        if only in (None, shape.format):
            for place in places(shape.value):
                for odd in EVERY:
                    yield shape.name, shape.file_bytes(put(shape.value, place, odd))


def at_random(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Files without end: some values changed, and of every third the bytes as well."""
    while True:
        shape = chance.choice(SHAPES)
        data = bytearray(shape.file_bytes(_change(shape, chance)))
        if chance.random() < 0.34:
            for _ in range(chance.randint(1, 3)):
                _break(data, chance)
        yield shape.name, bytes(data)


def _change(shape: Shape, chance: random.Random) -> object:
    value = shape.value
    for _ in range(chance.randint(1, 3)):
        found = list(places(value))
        odd = chance.choice(EVERY)
        if chance.random() < 0.2:  # a value from elsewhere in the same file
            odd = value
            for key in chance.choice(found):
                odd = odd[key]
        value = put(value, chance.choice(found), odd)
    return value


def _break(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    kind = chance.randrange(4)
    if kind == 0:
        del data[at:]
    elif kind == 1:
        del data[at : at + chance.randint(1, 40)]
    elif kind == 2:
        data[at:at] = bytes(data[chance.randrange(len(data) + 1) :][: chance.randint(1, 80)])
    else:
        data[at : at + 1] = bytes([chance.randrange(256)])


def main() -> int:
    """Runs until the time is over; the exit code."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--seconds", type=float, default=30)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--costly", type=int, default=COSTLY, metavar="N", help="tune and export one file of N")
    asked.add_argument("--every", metavar="FORMAT", help="every value in every place of one format, once")
    given = asked.parse_args()
    chance = random.Random(given.seed)
    files = every(given.every) if given.every else at_random(chance)
    signal.signal(signal.SIGALRM, _hangs)
    ends = time.monotonic() + given.seconds
    raised: dict[str, tuple[str, bytes]] = {}
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files:
            if time.monotonic() > ends:
                break
            path = Path(folder, name)
            path.write_bytes(data)
            count += 1
            signal.alarm(SLOW)
            try:
                case, shown = read(str(path))
                if count % given.costly == 0:
                    leave(case, shown)
            except Exception as why:  # noqa: BLE001 - whatever it is, it is what is looked for
                last = traceback.extract_tb(why.__traceback__)[-1]
                where = f"{type(why).__name__} at {Path(last.filename).name}:{last.lineno}: {str(why)[:80]}"
                if where not in raised:
                    raised[where] = name, data
            finally:
                signal.alarm(0)
    for where, (name, data) in raised.items():
        kept = Path(tempfile.mkdtemp(prefix="loop-inspector-fuzz."), name)
        kept.write_bytes(data)
        print(f"{where}: {kept}")
    print(f"seed {given.seed}: {count:,} files, {len(raised)} raised")
    return 1 if raised else 0


if __name__ == "__main__":
    sys.exit(main())
