def total(store, names):
    return sum(store.get(name) or 0 for name in names)
