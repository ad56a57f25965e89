"""`labs doctor`: each tool and version with [OK] or [FAIL], and the command that repairs it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence

from labs.doctor.check import Check

ALL_WELL, SOMETHING_MISSING = 0, 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    doctor = commands.add_parser(
        "doctor", parents=[shared], help="is everything here that the course needs?", description=__doc__
    )
    doctor.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    found = examine()
    is_well = not any(check.stops_the_course for check in found)
    if options.json:
        print(json.dumps({"ok": is_well, "checks": [check.as_dict() for check in found]}))
    else:
        print("\n".join(as_lines(found)))
    return ALL_WELL if is_well else SOMETHING_MISSING


def examine() -> list[Check]:
    """All checks; a single failed one where not even `packaging` is installed, which reads requirements."""
    try:
        from labs.doctor.checks import checks
        from labs.doctor.facts import gather

        return checks(gather())
    except ModuleNotFoundError as error:
        return [Check("packages", False, f"{error}", "make setup")]


def as_lines(found: Sequence[Check]) -> Iterator[str]:
    width = max(len(check.name) for check in found)
    for check in found:
        optional = "" if check.is_ok or check.is_required else " (optional)"
        yield f"{'[OK]' if check.is_ok else '[FAIL]':<6} {check.name:<{width}}  {check.found}{optional}"
        if not check.is_ok:
            yield f"{'':6} {'':{width}}  repair: {check.repair}"
    yield ""
    yield _summary(found)


def _summary(found: Sequence[Check]) -> str:
    missing = [check.name for check in found if check.stops_the_course]
    optional = [check.name for check in found if not check.is_ok and not check.is_required]
    needed = f"Repair first: {', '.join(missing)}." if missing else "Everything that the course needs is here."
    return needed + (f" Optional and missing: {', '.join(optional)}." if optional else "")
