"""Interactive mechanisms from measurements, and person-in-the-middle postprocessing of them."""
