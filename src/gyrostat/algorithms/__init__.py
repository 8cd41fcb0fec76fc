"""Algorithms: batches, initialisation, update rules, schedules, events, and the papers' algorithms by their names."""
