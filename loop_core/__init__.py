"""The continuation engine: reads any provider's bytes and decides, deterministically, what an agent loop does next."""

from loop_core.wire import decode

__all__ = ["decode"]
