"""Loop Inspector: the debugger for agent turns, over `loop_core`."""

__version__ = "0.1.0"
