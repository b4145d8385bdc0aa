"""The shrinking part of a window: sums of the last items of a finished block."""

from opendp_concurrent.counters.window_trees import Shrinking


class Counted:
    """Noise that adds nothing, and counts the nodes that get it."""

    def __init__(self):
        self.nodes = 0

    def release(self, exact):
        self.nodes += 1
        return exact


def test_without_noise_the_sums_are_exact_and_a_node_in_use_is_not_drawn_again():
    items, noise = list(range(1, 17)), Counted()
    part = Shrinking(items, noise)
    for left in range(16, -1, -1):
        assert part.total(left) == sum(items[16 - left :])
    assert noise.nodes <= 2 * 16
    again = Shrinking([0], noise)
    part.total(9)
    again.restore(part.to_record())
    before = noise.nodes
    assert again.total(9) == part.total(9)
    assert noise.nodes == before
