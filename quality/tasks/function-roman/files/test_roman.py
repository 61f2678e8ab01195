import unittest

from roman import roman


class RomanTest(unittest.TestCase):
    def test_small_numbers(self):
        self.assertEqual([roman(n) for n in (1, 2, 3, 4, 5)], ["I", "II", "III", "IV", "V"])

    def test_years(self):
        self.assertEqual(roman(1994), "MCMXCIV")
