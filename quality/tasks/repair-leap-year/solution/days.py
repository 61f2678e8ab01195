"""Prints the days of a month: days.py YEAR MONTH."""

import sys

LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days(year, month):
    return LENGTHS[month - 1] + (1 if month == 2 and is_leap(year) else 0)


if __name__ == "__main__":
    print(days(int(sys.argv[1]), int(sys.argv[2])))
