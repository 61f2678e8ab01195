"""Counts the words of stdin and prints `COUNT WORD`, the most frequent first."""

import sys
from collections import Counter


def ranked(text):
    counts = Counter(text.lower().split())
    return sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)


if __name__ == "__main__":
    for word, count in ranked(sys.stdin.read()):
        print(count, word)
