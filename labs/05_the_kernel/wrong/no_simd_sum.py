"""Each lane has a score of its own: the products are not added up."""

KILLED_BY = "all lanes count"
right = inner_loop


def inner_loop():
    return right().replace(
        "simd_sum(q[0] * keys[at] + q[1] * keys[at + 32])", "32 * (q[0] * keys[at] + q[1] * keys[at + 32])"
    )
