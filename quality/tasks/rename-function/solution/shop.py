import prices
from prices import total_price


def bill(lines):
    return sum(total_price(cents, count) for cents, count in lines)


def single(cents):
    return prices.total_price(cents)
