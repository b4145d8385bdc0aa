"""A budget for each person, where others hold one budget for all."""
