"""What a ledger writes and reads: values, terms, entries and their hashes. No database."""
