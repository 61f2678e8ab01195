class Store:
    """Numbers by name."""

    def __init__(self, values):
        self.values = dict(values)

    def get(self, name, otherwise):
        return self.values.get(name, otherwise)
