"""`inspector check`: a verdict on recorded sessions that CI, a fleet of machines and an agent can rely on.

`check_file` looks at one file, or its bytes, and returns a `Report`; it can be pickled and sent to another process or
machine, and reports merge with `merge`. The rules stand in `rules`.
"""

from inspector.check.examine import FileProblems, Problem, Report, check_file, merge
from inspector.check.many import check_paths

__all__ = ["FileProblems", "Problem", "Report", "check_file", "check_paths", "merge"]
