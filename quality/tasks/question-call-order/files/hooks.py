HOOKS = []


def hook(priority):
    """The smallest priority is called first."""

    def register(function):
        HOOKS.append((priority, function))
        return function

    return register
