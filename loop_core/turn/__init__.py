"""The turn: its state machine, limits, policies, seams, history and trace; pure, without a clock or a connection."""
