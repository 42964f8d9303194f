"""What agents write down of their sessions: rows of their own instead of the provider's bytes.

Shared by the importers of such files: the lines of a file, a model's answer with what was asked before it, and where
the word for its end comes from. An exchange made here says so (`Exchange.recorder`); see `docs/transcripts.md`.
"""
