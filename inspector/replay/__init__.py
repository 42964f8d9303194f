"""Recordings under our machine: cases, runs, and the same runs under other settings."""
