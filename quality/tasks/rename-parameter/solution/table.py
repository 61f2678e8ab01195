from text_tools import repeat

OPTIONS = {"count": 3, "separator": "|"}


def row(cell):
    return repeat(cell, **OPTIONS)
