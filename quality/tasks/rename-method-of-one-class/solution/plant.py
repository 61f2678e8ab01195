from log import Log
from valve import Valve


def stop():
    log = Log()
    valves = [Valve(log), Valve(log)]
    for valve in valves:
        valve.shut()
    log.close()
    return log, valves
