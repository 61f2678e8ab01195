import time

from days import start_of_day


def heading(seconds):
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def report(events, now):
    first = start_of_day(now).timestamp()
    return heading(now), [event for event in events if event >= first]
