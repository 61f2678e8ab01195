def repeat(text, count, separator=""):
    """`count` copies of the text."""
    return separator.join([text] * count)


def shorten(text, n):
    return text if len(text) <= n else text[: n - 1] + "…"
