from errors import fail

STOCK = {"pen": 10, "cup": 4}


def reserve(article, count):
    if article not in STOCK:
        fail(43)
    if count < 1:
        fail(42)
    return STOCK[article] - count
