class Log:
    def __init__(self):
        self.lines = []
        self.is_closed = False

    def write(self, line):
        self.lines.append(line)

    def close(self):
        self.is_closed = True
