LEVELS = ["debug", "info", "warning", "error"]


def keep(lines, level):
    """The lines of this level and those above; lines without a known level belong to the line before."""
    kept = []
    is_kept = False
    for line in lines:
        name = line.split(":", 1)[0].lower()
        if name in LEVELS:
            is_kept = LEVELS.index(name) >= LEVELS.index(level)
        if is_kept:
            kept.append(line)
    return kept
