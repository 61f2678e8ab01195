import json

ORDER = ["defaults.json", "team.json", "local.json"]


def load():
    settings = {}
    for name in ORDER:
        with open(name) as file:
            for key, value in json.load(file).items():
                if value is not None and key not in settings.get("locked", []):
                    settings[key] = value
    return settings
