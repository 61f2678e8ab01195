import time

from retry import retry


def load(connection, path, sleep=time.sleep):
    """The text at the path."""
    return retry(lambda: connection.get(path), 3, (ConnectionError,), sleep)
