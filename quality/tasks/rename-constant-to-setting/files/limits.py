LIMIT = 10


def accepts(size):
    return size <= LIMIT
