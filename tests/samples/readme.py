"""Writes `sample_sessions/README.md` from the sessions' own headers: `python tests/samples/readme.py FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.samples.transcripts import TRANSCRIPTS

HEAD = """# Sample sessions

These recordings come with Loop Inspector; each shows one way in which a turn can end. A file is a
[session file](../docs/session-format.md) or a [transcript](../docs/transcripts.md) as an agent writes it.
`inspector` without a path lists them; `inspector sample:01` opens the one whose name begins with 01. The end state is
that of every turn, under the default limits and the policy `strict`; *Unrecorded* means that the loop would go on where
the recording ends.

| file | title | story | provenance | end state |
|---|---|---|---|---|
"""


def table(folder: Path) -> str:
    """The whole page."""
    rows = []
    for path in sorted(folder.glob("*.session.jsonl")):
        header = json.loads(path.read_text(encoding="utf-8").split("\n", 1)[0])
        rows.append((path.name, *(header[name] for name in ("title", "story", "provenance", "end_state"))))
    rows += [(each.file, each.title, each.story, each.provenance, each.end_state) for each in TRANSCRIPTS]
    return HEAD + "".join(f"| `{name}` | {' | '.join(cells)} |\n" for name, *cells in sorted(rows))


if __name__ == "__main__":
    (Path(sys.argv[1]) / "README.md").write_text(table(Path(sys.argv[1])), encoding="utf-8")
