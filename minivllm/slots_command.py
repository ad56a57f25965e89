"""`minivllm slots`: what lies in a folder of slot files, whether it is whole, and making room."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from minivllm.budget import human_bytes, parse_bytes
from minivllm.config import ConfigError

if TYPE_CHECKING:
    from minivllm.cache.slot_retention import SlotFileInfo

OK, DAMAGED = 0, 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    slots = commands.add_parser("slots", help="list, verify or prune the slot files of a folder")
    actions = slots.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="what each file claims to hold, oldest first")
    listing.set_defaults(run=_list)
    verify = actions.add_parser("verify", help="read every file to the end; status 1 when one is damaged")
    verify.set_defaults(run=_verify)
    verify.add_argument("--slot-key-env", metavar="NAME", help="environment variable that holds the key")
    prune = actions.add_parser("prune", help="delete the oldest until the rest fits; files of others stay")
    prune.set_defaults(run=_prune)
    prune.add_argument("--slot-save-limit", required=True, metavar="BYTES", help="what may stay, as 10GiB or 10GB")
    prune.add_argument("--dry-run", action="store_true", help="say what would go, and delete nothing")
    for action in (listing, verify, prune):
        action.add_argument("--slot-save-path", type=Path, required=True, metavar="FOLDER", help="as of serve")
        action.add_argument("--json", action="store_true", help="print one JSON object")


def _list(arguments: argparse.Namespace) -> int:
    from minivllm.cache.slot_errors import SlotError
    from minivllm.cache.slot_retention import slot_files

    try:
        files = slot_files(arguments.slot_save_path)
    except SlotError as error:
        raise ConfigError(str(error)) from None
    total = sum(info.num_bytes for info in files)
    text = "\n".join([*(_line(info) for info in files), f"{len(files)} slot files, {human_bytes(total)}"])
    return _print(arguments, {"files": [asdict(info) for info in files], "num_bytes": total}, text)


def _verify(arguments: argparse.Namespace) -> int:
    from minivllm.cache.slot_encryption import passphrase_from
    from minivllm.cache.slot_errors import SlotError
    from minivllm.cache.slot_retention import verify

    try:
        faults = verify(arguments.slot_save_path, passphrase_from(arguments.slot_key_env))
    except SlotError as error:
        raise ConfigError(str(error)) from None
    text = "\n".join(f"{name}: whole" if fault is None else fault for name, fault in faults.items())
    _print(arguments, {"faults": faults}, text or "no slot files")
    return DAMAGED if any(faults.values()) else OK


def _prune(arguments: argparse.Namespace) -> int:
    from minivllm.cache.slot_errors import SlotError
    from minivllm.cache.slot_retention import prune

    limit_bytes = parse_bytes(arguments.slot_save_limit)
    try:
        gone: Sequence[SlotFileInfo] = prune(arguments.slot_save_path, limit_bytes, dry_run=arguments.dry_run)
    except SlotError as error:
        raise ConfigError(str(error)) from None
    verb = "would be deleted" if arguments.dry_run else "deleted"
    told = f"{len(gone)} slot files {verb}, {human_bytes(sum(info.num_bytes for info in gone))}"
    answer = {"deleted": [info.name for info in gone], "dry_run": arguments.dry_run}
    return _print(arguments, answer, "\n".join([*(_line(info) for info in gone), told]))


def _line(info: SlotFileInfo) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.modified_s))
    what = "encrypted" if info.is_encrypted else f"{info.num_tokens} tokens of {info.model}"
    return f"{info.name}  {human_bytes(info.num_bytes)}  {when}  {what}{', salted' if info.is_salted else ''}"


def _print(arguments: argparse.Namespace, answer: dict[str, object], text: str) -> int:
    print(json.dumps(answer) if arguments.json else text)
    return OK
