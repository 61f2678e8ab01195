class Cycle(Exception):
    """Targets need each other."""


def order(needs):
    """`needs` says for a target which targets come before it. Returns all names, also those that only occur as a
    need, each behind its needs; among those that are possible the alphabetically first comes first. Raises Cycle."""
    raise NotImplementedError
