"""The only code that holds data: handles, children, and what they are spawned from."""
