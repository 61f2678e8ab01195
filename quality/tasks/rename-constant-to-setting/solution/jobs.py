import limits

JOB_LIMIT = 3


def may_start(running, size):
    return running < JOB_LIMIT and size <= limits.UPLOAD_LIMIT
