"""What was drawn on axes."""


def lines(ax):
    return {line.get_label(): line.get_xydata().T for line in ax.get_lines()}


def edges(band):
    """Least and largest y of a filled band at each x."""
    (path,) = band.get_paths()
    found = {}
    for x, y in path.vertices:
        low, high = found.get(x, (y, y))
        found[x] = min(low, y), max(high, y)
    return found
