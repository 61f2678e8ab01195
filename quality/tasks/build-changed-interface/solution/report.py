def total(store, names):
    return sum(store.get(name, 0) for name in names)
