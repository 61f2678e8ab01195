from text_tools import repeat, shorten


def banner(title):
    line = repeat("=", n=len(title))
    return f"{line}\n{shorten(title, n=20)}\n{line}"
