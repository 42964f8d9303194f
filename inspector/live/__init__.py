"""Live turns: their request, server, key and tools; the run, its recording and its report."""
