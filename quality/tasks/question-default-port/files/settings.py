from legacy import OLD_PORT

DEFAULTS = {"port": 8080, "host": "localhost"}


def port_of(arguments, environment):
    for argument in arguments:
        if argument.startswith("--port="):
            return int(argument[7:])
    return int(environment.get("APP_PORT") or fallback())


def fallback():
    return OLD_PORT + 1 if DEFAULTS["host"] == "localhost" else DEFAULTS["port"]
