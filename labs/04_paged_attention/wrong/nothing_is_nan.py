"""The piece over no tokens makes NaN of everything."""

KILLED_BY = "nothing merges with anything"


def merge(one, other):
    highest = mx.maximum(one.highest, other.highest)
    shrink = [mx.exp(piece.highest - highest) for piece in (one, other)]
    total = one.total * shrink[0] + other.total * shrink[1]
    return Piece(highest, total, one.weighted * shrink[0][:, None] + other.weighted * shrink[1][:, None])
