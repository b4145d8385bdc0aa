"""How the losses of each measure add up, exactly."""
