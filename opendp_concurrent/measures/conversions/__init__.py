"""From one privacy measure to another, as numbers: one file per theorem, every bound rounded up."""
