"""Prices in cents. `calc` adds the tax."""

TAX = 19


def calc(cents, count=1):
    return cents * count * (100 + TAX) // 100


def calculator_name():
    return "calculator"
