"""Accounts, which decide what a launch may do. They use no data, no FFI, no file and no clock."""
