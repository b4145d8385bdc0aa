"""Known faults of OpenDP's own maps: what is recognised, and what is charged or refused instead."""
