"""Upper bounds on the privacy loss of the launches so far, one file per theorem."""
