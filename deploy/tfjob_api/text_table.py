"""Columns of text, as wide as their widest cell and as far apart as kubectl's."""

from typing import List, Sequence


def render_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> List[str]:
    """One line for the headings and one for each row."""
    cells = [headings, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
