"""Messages: constructors and queries as text that is sent, and read without trust."""
