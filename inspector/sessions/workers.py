"""Worker processes: how many there may be, and how they end."""

from __future__ import annotations

import os
import threading


def cores() -> int:
    """The number of processors available to this program."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_caller() -> None:
    """Makes this worker process end with its caller; if that is killed, it would otherwise wait for tasks forever."""
    threading.Thread(target=_wait_for_end, daemon=True).start()


def _wait_for_end() -> None:
    from multiprocessing import parent_process

    caller = parent_process()
    if caller is not None:
        caller.join()
    os._exit(1)
