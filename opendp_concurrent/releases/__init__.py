"""One exact answer, released at many levels of noise."""
