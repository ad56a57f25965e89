"""merge adds totals and sums without shrinking them to a common highest score."""

KILLED_BY = "pieces merge"


def merge(one, other):
    return Piece(mx.maximum(one.highest, other.highest), one.total + other.total, one.weighted + other.weighted)
