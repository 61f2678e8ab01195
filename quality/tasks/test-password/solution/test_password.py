import unittest

from password import problems


class PasswordTest(unittest.TestCase):
    def test_rules(self):
        cases = {"Abcdefg1": [], "Abcdef1": ["short"], "Abcdefgh": ["digit"], "abcdefg1": ["case"], "ABCDEFG1": ["case"]}
        for password, wanted in cases.items():
            self.assertEqual(problems(password), wanted, password)
