from jobs import JOB_LIMIT as jobs_limit
from limits import UPLOAD_LIMIT


def status():
    return f"{jobs_limit} jobs, {UPLOAD_LIMIT} megabytes"
