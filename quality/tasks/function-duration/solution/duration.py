import re


def parse(text):
    found = re.fullmatch(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", text)
    if not text or not found:
        raise ValueError(text)
    return sum(int(part or 0) * unit for part, unit in zip(found.groups(), (86400, 3600, 60, 1)))
