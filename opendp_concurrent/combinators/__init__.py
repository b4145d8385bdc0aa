"""Constructors only: guards, then one return."""
