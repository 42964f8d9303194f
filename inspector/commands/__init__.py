"""The commands, a module for each kind; `inspector.cli` imports the one that was asked for."""
