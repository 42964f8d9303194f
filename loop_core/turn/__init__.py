"""The turn: its state machine, limits, policies, seams, history and trace. It is pure: no clock, no connection."""
