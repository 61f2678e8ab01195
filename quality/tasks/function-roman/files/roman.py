def roman(number):
    """The Roman numeral of a number from 1 to 3999; ValueError for others."""
    raise NotImplementedError
