class Cache:
    """Holds at most `size` values. When it is full, `put` of a new key drops the key that was used least recently;
    both `get` and `put` are a use."""

    def __init__(self, size):
        raise NotImplementedError

    def get(self, key, default=None):
        raise NotImplementedError

    def put(self, key, value):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError
