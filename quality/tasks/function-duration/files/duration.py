def parse(text):
    """Seconds of a duration such as `1d2h3m4s`. Units come in the order d, h, m, s, each at most once, at least one;
    numbers are whole. Everything else is a ValueError, also spaces and an empty text."""
    raise NotImplementedError
