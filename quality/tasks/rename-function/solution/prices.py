"""Prices in cents. `total_price` adds the tax."""

TAX = 19


def total_price(cents, count=1):
    return cents * count * (100 + TAX) // 100


def calculator_name():
    return "calculator"
