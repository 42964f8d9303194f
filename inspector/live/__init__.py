"""Live turns: the request, server, key and tools; the run, its recording and its report.

The transport itself is the engine's; nothing here opens a connection.
"""
