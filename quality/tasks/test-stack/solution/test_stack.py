import unittest

from stack import Stack


class StackTest(unittest.TestCase):
    def test_order_and_end(self):
        stack = Stack()
        stack.push(1)
        stack.push(2)
        self.assertEqual((stack.pop(), stack.pop()), (2, 1))
        self.assertRaises(IndexError, stack.pop)

    def test_undo_works_once(self):
        stack = Stack()
        stack.push(1)
        stack.pop()
        stack.undo()
        stack.undo()
        self.assertEqual(stack.pop(), 1)
        self.assertRaises(IndexError, stack.pop)

    def test_push_forgets_what_was_popped(self):
        stack = Stack()
        stack.push(1)
        stack.pop()
        stack.push(2)
        stack.undo()
        self.assertEqual(stack.pop(), 2)
