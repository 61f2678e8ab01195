def fail(number):
    raise SystemExit(f"E{number}: cannot proceed")
