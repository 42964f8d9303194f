"""The entry point of the `inspector` command and of `python -m inspector`."""

import gc


def start() -> None:
    """Runs the command line.

    The garbage collector rests while the first modules load: what they make stays, and the collector looked through it
    fifteen times, 2 of 110 ms.
    """
    gc.disable()
    from inspector.cli import run

    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    start()
