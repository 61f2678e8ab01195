def repeat(text, n, separator=""):
    """`n` copies of the text."""
    return separator.join([text] * n)


def shorten(text, n):
    return text if len(text) <= n else text[: n - 1] + "…"
