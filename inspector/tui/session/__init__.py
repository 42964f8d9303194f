"""The session screen and its parts: stepping, running, viewing, each with its keys and actions."""
