import unittest

from clamp import clamp


class ClampTest(unittest.TestCase):
    def test_values(self):
        self.assertEqual([clamp(n, 2, 4) for n in (1, 3, 5)], [2, 3, 4])
        self.assertEqual(clamp(9, 4, 4), 4)

    def test_limits(self):
        with self.assertRaises(ValueError):
            clamp(1, 3, 2)
