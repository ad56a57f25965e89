"""What a quantized row must keep: half a step for every group, constant groups exactly, and a NaN that stays one."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from labs.kit.exercises.part import Answer, Check, Part, Wrong
from labs.kit.exercises.search import for_all

NUMBERS = st.floats(-100, 100, width=32).map(lambda number: round(number, 2))


def row(*numbers: float) -> np.ndarray:
    return np.array([numbers], dtype=np.float32)


def quantized(
    answer: Answer, values: np.ndarray, bits: int, group_size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes, scales, biases = answer.quantize(values.copy(), bits, group_size)
    groups = values.shape[1] // group_size
    for name, array, shape, dtype in (
        ("codes", codes, values.shape, np.uint8),
        ("scales", scales, (len(values), groups), np.float32),
        ("biases", biases, (len(values), groups), np.float32),
    ):
        got = (getattr(array, "shape", None), getattr(array, "dtype", type(array)))
        if got != (shape, np.dtype(dtype)):
            raise Wrong(
                f"{name} have another shape or type",
                expected=f"{np.dtype(dtype)} {list(shape)}",
                actual=f"{got[1]} {got[0]}",
            )
    return codes, scales, biases


def back(answer: Answer, values: np.ndarray, bits: int, group_size: int) -> np.ndarray:
    restored = np.asarray(answer.dequantize(*quantized(answer, values, bits, group_size)))
    if restored.shape != values.shape:
        raise Wrong("dequantize gives another shape", expected=list(values.shape), actual=list(restored.shape))
    return restored


def show(values: np.ndarray) -> str:
    return str([round(float(number), 4) for number in values.reshape(-1)])


def examples(answer: Answer) -> None:
    codes, scales, biases = quantized(answer, row(-1.0, 0.0, 0.5, 3.0), 8, 4)
    if codes.tolist() != [[0, 64, 96, 255]]:
        raise Wrong("the README's example has other codes", expected=[[0, 64, 96, 255]], actual=codes.tolist())
    if not np.allclose([scales[0, 0], biases[0, 0]], [4 / 255, -1], atol=1e-6):
        raise Wrong(
            "the README's example has another scale or bias",
            expected=f"scale {4 / 255:.6f}, bias -1",
            actual=f"scale {scales[0, 0]}, bias {biases[0, 0]}",
        )


def within_half_a_step(answer: Answer, values: np.ndarray, bits: int, group_size: int) -> None:
    restored = back(answer, values, bits, group_size)
    for start in range(0, values.shape[1], group_size):
        for token in range(len(values)):
            group, got = values[token, start : start + group_size], restored[token, start : start + group_size]
            half_a_step = float(group.max() - group.min()) / (2**bits - 1) / 2
            bound = half_a_step * 1.001 + 1e-5 * max(1.0, float(np.abs(group).max()))
            if not (np.abs(got - group) <= bound).all():
                raise Wrong(
                    f"{bits} bits, groups of {group_size}: a number comes back more than half a step away",
                    drawing=f"group      {show(group)}\ncame back  {show(got)}",
                    expected=f"at most {half_a_step:.4g} away",
                    actual=f"{np.abs(got - group).max():.4g} away",
                )


def at_most_half_a_step_away(answer: Answer) -> None:
    @for_all(numbers=st.lists(NUMBERS, min_size=4, max_size=4), bits=st.sampled_from([8, 4, 2]))
    def one_group(numbers: list[float], bits: int) -> None:
        within_half_a_step(answer, row(*numbers), bits, 4)


def every_group_has_its_own_scale(answer: Answer) -> None:
    within_half_a_step(answer, row(0.1, 0.2, 0.3, 0.4, 100.0, -100.0, 50.0, 0.0), 8, 4)
    values = np.stack([np.arange(8), np.arange(8) * 10]).astype(np.float32)
    within_half_a_step(answer, values, 4, 2)
    within_half_a_step(answer, values, 4, 8)


def neighbours_form_a_group(answer: Answer) -> None:
    values = row(0, 100, 1, 101, 2, 102, 3, 103)
    _, scales, _ = quantized(answer, values, 8, 2)
    if not np.allclose(scales, 100 / 255, rtol=1e-4):
        raise Wrong(
            "other numbers share a group",
            drawing=f"row  {show(values)}, groups of 2",
            expected="0 and 100, 1 and 101, ...: every range is 100",
            actual=f"ranges {show(scales * 255)}",
        )


def equal_numbers_come_back_exactly(answer: Answer) -> None:
    for number in (0.0, -2.5, 7.25):
        values = row(number, number, number, number, 1, 2, 3, 4)
        restored = back(answer, values, 8, 4)
        if restored[0, :4].tolist() != [number] * 4:
            raise Wrong(
                "a group of equal numbers changes",
                drawing=f"row  {show(values)}",
                expected=[number] * 4,
                actual=restored[0, :4].tolist(),
            )


def what_is_no_number_stays_visible(answer: Answer) -> None:
    for bad in (np.nan, np.inf, -np.inf):
        values = row(1, bad, 3, 4, 5, 6, 7, 8)
        with np.errstate(all="ignore"):
            restored = back(answer, values, 8, 4)
        drawing = f"row        {show(values)}\ncame back  {show(restored)}"
        if not np.isnan(restored[0, :4]).all():
            raise Wrong(
                f"a group with {bad} in it comes back as numbers",
                drawing=drawing,
                expected="nan, for the whole group",
                actual=show(restored[0, :4]),
            )
        if np.isnan(restored[0, 4:]).any() or np.abs(restored[0, 4:] - values[0, 4:]).max() > 3 / 255:
            raise Wrong(
                f"{bad} in one group spoils another",
                drawing=drawing,
                expected=show(values[0, 4:]),
                actual=show(restored[0, 4:]),
            )


def groups_must_fit(answer: Answer) -> None:
    try:
        result: Any = answer.quantize(row(1, 2, 3, 4, 5, 6), 8, 4)
    except ValueError:
        return
    raise Wrong(
        "groups of 4 do not divide a row of 6, and nothing is said",
        expected="ValueError",
        actual=f"codes of shape {np.shape(result[0])}",
    )


def bytes_examples(answer: Answer) -> None:
    require_bytes(answer, (64, 8, 64, 4), 72)


def require_bytes(answer: Answer, arguments: tuple[int, int, int, int], expected: float) -> None:
    actual = answer.bytes_per_token(*arguments)
    if actual != expected:
        call = "bytes_per_token(dim={}, bits={}, group_size={}, scale_bytes={})".format(*arguments)
        raise Wrong(call, expected=f"{expected} bytes", actual=f"{actual} bytes")


def bits_groups_and_scales_count(answer: Answer) -> None:
    for arguments, expected in (
        ((64, 4, 64, 4), 40),
        ((64, 8, 32, 4), 80),
        ((64, 4, 32, 2), 40),
        ((128, 4, 64, 2), 72),
        ((64, 2, 64, 4), 24),
    ):
        require_bytes(answer, arguments, expected)


PARTS = (
    Part(
        ("quantize", "dequantize"),
        (
            Check(
                "the README's example",
                examples,
                "The smallest number is code 0, the largest is code 2**bits - 1, and codes are rounded.",
            ),
            Check(
                "at most half a step away",
                at_most_half_a_step_away,
                "Codes were cut instead of rounded, or the range was divided into too many or too few steps.",
            ),
            Check(
                "every group has its own scale",
                every_group_has_its_own_scale,
                "One scale for a row, or for a token: one large channel swallows the small ones.",
            ),
            Check(
                "neighbours form a group",
                neighbours_form_a_group,
                "The reshape put groups along another axis: numbers far from each other share a scale.",
            ),
            Check(
                "equal numbers come back exactly",
                equal_numbers_come_back_exactly,
                "A range of 0 was divided by, or the scale of such a group is not harmless.",
            ),
            Check(
                "what is no number stays visible",
                what_is_no_number_stays_visible,
                "A NaN turned into a code is some number: nobody will ever notice. mx.quantize has this fault.",
            ),
            Check("groups must fit", groups_must_fit, "The rest of the row was dropped or padded in silence."),
        ),
        "The error is known in advance: half a step. What it does to an answer is not, and has to be measured.",
    ),
    Part(
        ("bytes_per_token",),
        (
            Check(
                "the README's example", bytes_examples, "Each group has a scale and a bias, both of scale_bytes bytes."
            ),
            Check(
                "bits, groups and scales count",
                bits_groups_and_scales_count,
                "Codes are packed (4 bits are half a byte), and there are dim / group_size groups.",
            ),
        ),
        "4 bits are not a quarter of 16: scales and biases take their share, the more the smaller the groups.",
    ),
)
