"""The exact sum of losses under each measure."""
