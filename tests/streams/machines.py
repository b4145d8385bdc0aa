"""A machine of a user that tests derive theirs from."""


class Heard:
    """Tells all items that have come to it: no privacy at all."""

    def __init__(self):
        self.items = []

    def update(self, item):
        self.items.append(item)

    def update_all(self, items):
        for item in items:
            self.update(item)

    def ask(self, query):
        return list(self.items)


class Sum(Heard):
    """Tells their sum."""

    def ask(self, query):
        return sum(item or 0 for item in self.items)
