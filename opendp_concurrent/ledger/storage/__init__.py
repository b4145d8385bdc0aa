"""The database of a ledger: SQLite files and PostgreSQL servers, their tables and their errors."""
