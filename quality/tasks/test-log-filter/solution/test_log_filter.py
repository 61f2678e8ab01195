import unittest

from log_filter import keep


class KeepTest(unittest.TestCase):
    def test_levels(self):
        lines = ["before", "info: a", " more of a", "Warning: b", " more of b", "ERROR: c", "debug: d"]
        self.assertEqual(keep(lines, "warning"), ["Warning: b", " more of b", "ERROR: c"])
        self.assertEqual(keep(lines, "error"), ["ERROR: c"])
