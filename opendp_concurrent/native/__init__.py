"""The only code that knows OpenDP's private names."""
