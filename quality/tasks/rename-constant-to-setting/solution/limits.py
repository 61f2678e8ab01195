UPLOAD_LIMIT = 10


def accepts(size):
    return size <= UPLOAD_LIMIT
