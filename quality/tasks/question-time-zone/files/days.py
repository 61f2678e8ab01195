import datetime


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def start_of_day(seconds):
    return stamp(seconds).replace(hour=0, minute=0, second=0, microsecond=0)
