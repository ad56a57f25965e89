"""merge shrinks to the highest score of the later piece: with a higher one before, exp grows beyond all bounds."""

KILLED_BY = "the highest score may come first or last"


def merge(one, other):
    highest = mx.where(other.total == 0, one.highest, other.highest)
    shrink = [mx.where(piece.total == 0, 0.0, mx.exp(piece.highest - highest)) for piece in (one, other)]
    total = one.total * shrink[0] + other.total * shrink[1]
    return Piece(highest, total, one.weighted * shrink[0][:, None] + other.weighted * shrink[1][:, None])
