"""A menu: names and what they do."""


def build(names, act):
    """Returns name -> function without arguments that calls `act` with the name."""
    buttons = {}
    for name in names:
        buttons[name] = lambda name=name: act(name)
    return buttons
