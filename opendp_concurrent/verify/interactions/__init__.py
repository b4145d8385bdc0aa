"""Interactive mechanisms against all analysts: tables, simulations, streams and real sessions."""
