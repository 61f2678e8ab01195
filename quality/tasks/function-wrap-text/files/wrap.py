def wrap(text, width):
    """The words of the text in lines of at most `width` characters, with one space between words. A word that is
    longer than the width has a line of its own. No words: an empty list."""
    raise NotImplementedError
