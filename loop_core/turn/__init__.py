"""The turn: its state machine, limits, policies, seams, history and trace. It is pure: it uses no clock and no
connection."""
