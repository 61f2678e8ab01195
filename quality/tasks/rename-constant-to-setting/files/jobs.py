import limits

LIMIT = 3


def may_start(running, size):
    return running < LIMIT and size <= limits.LIMIT
