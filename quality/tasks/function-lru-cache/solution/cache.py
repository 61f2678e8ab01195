class Cache:
    def __init__(self, size):
        self.size = size
        self.values = {}

    def get(self, key, default=None):
        if key not in self.values:
            return default
        self.values[key] = self.values.pop(key)
        return self.values[key]

    def put(self, key, value):
        self.values.pop(key, None)
        self.values[key] = value
        if len(self.values) > self.size:
            del self.values[next(iter(self.values))]

    def __len__(self):
        return len(self.values)
