SIGNS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")]
SIGNS += [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def roman(number):
    """The Roman numeral of a number from 1 to 3999; ValueError for others."""
    if not 1 <= number <= 3999:
        raise ValueError(number)
    text = ""
    for value, sign in SIGNS:
        text += sign * (number // value)
        number %= value
    return text
