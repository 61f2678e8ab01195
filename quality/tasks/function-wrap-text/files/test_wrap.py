import unittest

from wrap import wrap


class WrapTest(unittest.TestCase):
    def test_lines_are_filled(self):
        self.assertEqual(wrap("one two three", 7), ["one two", "three"])
