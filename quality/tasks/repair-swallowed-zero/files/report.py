"""Prints one line per sensor: report.py NAME=DEGREES …, where DEGREES may be empty."""

import sys


def parse(argument):
    name, _, degrees = argument.partition("=")
    return name, float(degrees) if degrees else None


def line(name, degrees):
    if not degrees:
        return f"{name}: no data"
    return f"{name}: {degrees:.1f}"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(line(*parse(argument)))
