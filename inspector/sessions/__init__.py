"""Recorded sessions: reading them in any format, without credentials, and finding the turns in them."""
