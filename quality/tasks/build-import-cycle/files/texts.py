from shapes import area


def label(kind, size):
    return f"{kind} {area(kind, size):.2f}"
