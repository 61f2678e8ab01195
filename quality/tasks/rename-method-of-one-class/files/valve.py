class Valve:
    def __init__(self, log):
        self.log = log
        self.is_open = True

    def close(self):
        self.is_open = False
        self.log.write("closed")
