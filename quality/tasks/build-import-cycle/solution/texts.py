def label(kind, area):
    return f"{kind} {area:.2f}"
