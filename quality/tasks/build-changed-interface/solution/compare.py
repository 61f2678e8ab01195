def larger(store, first, second):
    """The name of the larger number; the first one if they are equal."""
    return max(first, second, key=lambda name: store.get(name, 0))
