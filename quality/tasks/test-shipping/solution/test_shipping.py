import unittest

from shipping import cost


class ShippingTest(unittest.TestCase):
    def test_prices(self):
        grams = (1, 500, 501, 2000, 2001)
        self.assertEqual([cost(it) for it in grams], [300, 300, 550, 550, 900])
        self.assertEqual([cost(it, "FR") for it in grams], [600, 600, 1100, 1100, 1800])

    def test_nothing(self):
        self.assertRaises(ValueError, cost, 0)
