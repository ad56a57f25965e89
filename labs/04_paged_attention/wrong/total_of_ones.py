"""partial counts tokens where the total of exp(score - highest) belongs."""

KILLED_BY = "one piece is attention"
right_partial = partial


def partial(queries, keys, values):
    piece = right_partial(queries, keys, values)
    return Piece(piece.highest, mx.full(piece.total.shape, float(len(keys))), piece.weighted)
