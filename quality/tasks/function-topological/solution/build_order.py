class Cycle(Exception):
    """Targets need each other."""


def order(needs):
    names = set(needs).union(*needs.values())
    done = []
    while len(done) < len(names):
        ready = [name for name in names if name not in done and set(needs.get(name, [])) <= set(done)]
        if not ready:
            raise Cycle(sorted(names - set(done)))
        done.append(min(ready))
    return done
