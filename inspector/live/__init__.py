"""Live turns: the request, server, key and tools; the run, its recording and its report.

The engine's transport opens the connections.
"""
