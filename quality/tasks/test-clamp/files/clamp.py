def clamp(value, low, high):
    """The value, or the limit that it is beyond. A low limit above the high one is a ValueError."""
    if low > high:
        raise ValueError("the limits are exchanged")
    return max(low, min(value, high))
