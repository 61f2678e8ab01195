from log import Log
from valve import Valve


def stop():
    log = Log()
    valves = [Valve(log), Valve(log)]
    for valve in valves:
        valve.close()
    log.close()
    return log, valves
