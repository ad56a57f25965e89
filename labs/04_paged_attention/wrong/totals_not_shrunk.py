"""merge shrinks the weighted sums and forgets the totals."""

KILLED_BY = "pieces merge"


def merge(one, other):
    highest = mx.maximum(one.highest, other.highest)
    shrink = [mx.exp(piece.highest - highest)[:, None] for piece in (one, other)]
    return Piece(highest, one.total + other.total, one.weighted * shrink[0] + other.weighted * shrink[1])
