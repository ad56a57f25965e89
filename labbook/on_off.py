"""The on/off pair: two recorded measurements of one server, its cache on and its cache off, judged together.

Each side is measured with `measure-prefix-cache --label WORD`. If the switch is all that differs, the share of the time
that a warm request takes must differ, too: on over off is the effect of the switch.
"""

from __future__ import annotations

import random
from statistics import median
from typing import Any

from labbook.book import Labbook
from labbook.errors import LabbookError, UsageError
from labbook.record import RECORD_VERSION, Record, now_iso
from labbook.signals import RATIO_BOUND
from labbook.statistics import INTERVAL_METHOD, LEAST_GROUPS, Interval, TimedGroup, bootstrap
from labbook.verdict import Verdict

EXPERIMENT = "on_off"
MEASURED_BY = ("cold_warm", "repeat")
_SAME = (
    "experiment",
    "model",
    "engine",
    "engine_version",
    "identity",
    "kv_precision",
    "prompt_sha256",
    "questions",
    "timed",
)


def judge_on_off(on: Record, off: Record, *, despite_differences: bool = False) -> Record:
    """The record of a pair: both ratios, their quotient with its interval, and a verdict.

    `reused`: with the cache on the prefix is reused, with it off it is not, and the clock shows the difference.
    `not_reused`: it is reused on neither side. Raises UsageError when the records are of something else, or when more
    than the switch differs between them.
    """
    for name, record in (("on", on), ("off", off)):
        if record.get("experiment") not in MEASURED_BY or "requests" not in record:
            raise UsageError(
                f"the record {name} is of experiment {record.get('experiment')!r}: a pair needs one of "
                f"{', '.join(MEASURED_BY)} on each side"
            )
    differing = what_differs(on, off)
    if differing and not despite_differences:
        raise UsageError(f"more than the switch differs between the two records: {'; '.join(differing)}")
    effect = effect_interval(on, off)
    found = _verdict(on, off, effect)
    return {
        "version": RECORD_VERSION,
        "lab": on.get("lab"),
        "experiment": EXPERIMENT,
        "label": f"{on.get('label')} / {off.get('label')}",
        "engine": on.get("engine"),
        "engine_version": on.get("engine_version"),
        "model": on.get("model"),
        "on": _side(on),
        "off": _side(off),
        "on_over_off": None if effect is None else effect.as_dict() | {"method": INTERVAL_METHOD},
        "differences": differing,
        "verdict": found.word,
        "verdict_reason": found.reason,
        "absent": {} if effect else {"on_over_off": "a side has no group with both a warm request and one without"},
        "environment": on.get("environment"),
        "recorded_at": now_iso(),
    }


def last_labelled(book: Labbook, label: str) -> Record:
    """The last measurement with this label that can be a side. Raises LabbookError when there is none."""
    found = [record for record in book.select(label=label) if record.get("experiment") in MEASURED_BY]
    if not found:
        raise LabbookError(f"{book.path} holds no cold and warm pair labelled {label!r}: see `labbook list`")
    return found[-1]


def what_differs(on: Record, off: Record) -> list[str]:
    """What makes two records no pair, each with both values: server and prompts, and the machine that measured."""
    pairs = [(name, on.get(name), off.get(name)) for name in _SAME]
    pairs.append(("machine", _device(on), _device(off)))
    return [f"{name} ({one} and {other})" for name, one, other in pairs if one != other]


def effect_interval(on: Record, off: Record) -> Interval | None:
    """The ratio with the cache on over the ratio with it off; each side's groups are drawn for themselves."""
    sides = [[group.ratios() for group in timed_groups(record)] for record in (on, off)]
    if not all(sides):
        return None
    value = _quotient(sides)
    if min(map(len, sides)) < LEAST_GROUPS:
        ratios, others = ([ratio for group in side for ratio in group] for side in sides)
        return Interval(value, min(ratios) / max(others), max(ratios) / min(others), None, 0, 0)

    def draw(generator: random.Random) -> float:
        return _quotient([generator.choices(side, k=len(side)) for side in sides])

    return bootstrap(draw, value, seed=int(on.get("seed") or 0))


def _quotient(sides: list[list[list[float]]]) -> float:
    one, other = (median([ratio for group in side for ratio in group]) for side in sides)
    return one / other


def timed_groups(record: Record) -> list[TimedGroup]:
    """A record's warm times beside those without reuse, group by group."""
    key = "ttft_s" if record.get("timed") == "time to first token" else "total_s"
    answered = [one for one in record["requests"] if one.get("error") is None and one.get(key) is not None]
    groups = []
    for group in sorted({one.get("group", 1) for one in answered}):
        of_group = [one for one in answered if one.get("group", 1) == group]
        warm = tuple(one[key] for one in of_group if one["phase"] == "warm")
        without = tuple(one[key] for one in of_group if one["phase"] in ("cold", "control"))
        if warm and without:
            groups.append(TimedGroup(warm, without))
    return groups


def _verdict(on: Record, off: Record, effect: Interval | None) -> Verdict:
    sides = (("on", on), ("off", off))
    for name, record in sides:
        if record["verdict"] == "contaminated":
            return Verdict("contaminated", f"the side {name} is contaminated: {record['verdict_reason']}")
    told = "; ".join(f"{name}: {record['verdict']}" for name, record in sides)
    if effect is not None:
        told += f"; on over off {effect.value:.3f} ({effect.low:.3f} to {effect.high:.3f} {effect.held})"
    words = (on["verdict"], off["verdict"])
    if words == ("reused", "not_reused"):
        if effect is None or effect.high < RATIO_BOUND:
            return Verdict("reused", f"the switch makes the difference ({told})")
        return Verdict("inconclusive", f"the counts say so, and the clock shows no such difference ({told})")
    if words == ("not_reused", "not_reused"):
        return Verdict("not_reused", f"nothing is reused on either side ({told})")
    if off["verdict"] == "reused":
        return Verdict("inconclusive", f"the side called off reuses a prefix: it was not switched off ({told})")
    return Verdict("inconclusive", f"a side has no verdict that tells ({told})")


def _side(record: Record) -> dict[str, Any]:
    names = ("label", "recorded_at", "verdict", "warm_over_cold", "cold_s", "warm_s", "groups")
    return {name: record.get(name) for name in names}


def _device(record: Record) -> str | None:
    device = (record.get("environment") or {}).get("device")
    return None if device is None else str(device)
