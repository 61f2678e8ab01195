from jobs import LIMIT as jobs_limit
from limits import LIMIT


def status():
    return f"{jobs_limit} jobs, {LIMIT} megabytes"
