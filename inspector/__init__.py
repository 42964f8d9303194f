"""Loop Inspector: the debugger for agent turns, over `loop_core`."""
