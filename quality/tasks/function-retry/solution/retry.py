def retry(act, times, errors, sleep):
    for attempt in range(times - 1):
        try:
            return act()
        except errors:
            sleep(2**attempt)
    return act()
