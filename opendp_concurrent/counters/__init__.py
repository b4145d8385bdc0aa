"""Counters of a stream: sums, histograms, sliding windows, and alarms."""
