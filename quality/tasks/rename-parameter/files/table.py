from text_tools import repeat

OPTIONS = {"n": 3, "separator": "|"}


def row(cell):
    return repeat(cell, **OPTIONS)
