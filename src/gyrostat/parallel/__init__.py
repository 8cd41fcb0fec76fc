"""Worker processes, threads, progress displays and whole-file writes."""
