import unittest

from compare import larger
from report import total
from store import Store


class AllTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total(Store({"a": 1}), ["a", "b"]), 1)

    def test_larger(self):
        self.assertEqual(larger(Store({"a": 1}), "b", "a"), "a")
