"""`inspector check`: checks recorded sessions by rules, with exit codes and report formats for CI, fleets of machines
and agents.

`check_file` looks at one file, or its bytes, and returns a `Report`; it can be pickled and sent to another process or
machine, and reports merge with `merge`. The rules stand in `rules`.
"""

from inspector.check.examine import FileProblems, Problem, Report, check_file, check_paths, merge

__all__ = ["FileProblems", "Problem", "Report", "check_file", "check_paths", "merge"]
