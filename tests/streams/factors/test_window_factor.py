"""A window is the difference of two noisy prefix sums."""

from opendp_concurrent.streams.factors import FactorWindow


class Prefix:
    """Exact prefix sums, in units of 2**-4."""

    def __init__(self):
        self.fine_total = self.steps = 0

    def update(self, item):
        self.fine_total += item << 4
        self.steps += 1

    def nearest(self, total):
        return total >> 4

    def to_record(self):
        return [self.fine_total, self.steps]

    def restore(self, record):
        self.fine_total, self.steps = record


def test_the_last_steps_are_summed_and_a_record_continues():
    items = [3, 0, 5, 2, 7, 1, 0, 4]
    whole, window = FactorWindow(3, Prefix()), FactorWindow(3, Prefix())
    for step, item in enumerate(items, 1):
        for one in (whole, window):
            one.update(item)
            assert one.total() == sum(items[max(0, step - 3) : step])
        record, window = window.to_record(), FactorWindow(3, Prefix())
        window.restore(record)
