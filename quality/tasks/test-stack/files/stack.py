class Stack:
    """The last value that was pushed is popped first. `undo` pushes again what was popped last, once."""

    def __init__(self):
        self.values = []
        self.popped = []

    def push(self, value):
        self.values.append(value)
        self.popped = []

    def pop(self):
        if not self.values:
            raise IndexError("the stack is empty")
        self.popped = [self.values.pop()]
        return self.popped[0]

    def undo(self):
        self.values += self.popped
        self.popped = []
