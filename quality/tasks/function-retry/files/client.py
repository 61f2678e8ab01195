import time


def load(connection, path, sleep=time.sleep):
    """The text at the path."""
    return connection.get(path)
