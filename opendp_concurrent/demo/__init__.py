"""The demonstration: real data, interleaved mechanisms, one filter."""
