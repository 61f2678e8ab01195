def retry(act, times, errors, sleep):
    """Calls `act` up to `times` times while it raises one of `errors` (a tuple), and returns its result. Before the
    second try it calls sleep(1), before the third sleep(2), then sleep(4) and so on. The last error is raised."""
    raise NotImplementedError
