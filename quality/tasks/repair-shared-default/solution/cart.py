class Cart:
    def __init__(self, items=None):
        self.items = [] if items is None else items

    def add(self, name, cents, count=1):
        self.items.append((name, cents, count))

    def total(self):
        return sum(cents * count for _, cents, count in self.items)
