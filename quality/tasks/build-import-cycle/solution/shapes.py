from texts import label

PI = 3.14


def area(kind, size):
    return PI * size * size if kind == "circle" else size * size


def describe(kind, size):
    return label(kind, area(kind, size))
