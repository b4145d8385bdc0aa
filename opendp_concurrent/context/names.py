"""A query on a list, as editors know it: ``names.pyi`` has its constructors, which Python adds."""
