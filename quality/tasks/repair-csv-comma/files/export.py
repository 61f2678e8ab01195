"""Writes people as CSV."""

import csv
import io


def export(people):
    """The text of a CSV file with a header; lines end with a line feed."""
    out = io.StringIO()
    out.write("name,born\n")
    for name, born in people:
        out.write(f"{name},{born}\n")
    return out.getvalue()


def read(text):
    return list(csv.reader(io.StringIO(text)))
