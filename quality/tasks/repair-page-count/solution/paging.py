"""Splits a listing into pages."""


def page_count(items, size):
    """How many pages are needed; none for an empty listing."""
    return -(-items // size)


def page(items, number, size):
    """The items of a page; the first page has the number 1."""
    start = (number - 1) * size
    return items[start : start + size]
