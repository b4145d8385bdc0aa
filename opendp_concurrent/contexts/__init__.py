"""A context of OpenDP with concurrent children, and searches for scales and shares."""
