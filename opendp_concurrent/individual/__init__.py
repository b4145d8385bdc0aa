"""Individual budgets: one budget per person, not one for all."""
