"""What was drawn on axes."""


def lines(ax):
    return {line.get_label(): line.get_xydata().T for line in ax.get_lines()}
