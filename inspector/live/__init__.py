"""Live turns: the request, server, key and tools; the run, its recording and its report."""
