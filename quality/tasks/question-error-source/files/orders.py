from errors import fail
from stock import reserve


def place(article, count):
    if count > 100:
        fail(41)
    return reserve(article, count)
