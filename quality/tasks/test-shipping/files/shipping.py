def cost(grams, country="DE"):
    """Cents: up to 500 g 300, up to 2000 g 550, above 900; twice as much abroad."""
    if grams <= 0:
        raise ValueError("nothing to send")
    cents = 300 if grams <= 500 else 550 if grams <= 2000 else 900
    return cents if country == "DE" else cents * 2
