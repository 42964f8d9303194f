"""Tuning: a grid of limits over recorded sessions, each turn in each cell, and the smallest budget of each."""
