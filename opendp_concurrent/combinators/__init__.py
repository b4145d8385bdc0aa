"""The combinators: constructors that compose, convert, wrap or postprocess measurements."""
