def problems(password):
    """Why a password is not accepted; an empty list if it is."""
    found = []
    if len(password) < 8:
        found.append("short")
    if not any(c.isdigit() for c in password):
        found.append("digit")
    if password.lower() == password or password.upper() == password:
        found.append("case")
    return found
