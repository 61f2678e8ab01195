import prices
from prices import calc


def bill(lines):
    return sum(calc(cents, count) for cents, count in lines)


def single(cents):
    return prices.calc(cents)
