"""`labs mystery up | status | down`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from labs.kit.exercises import workbook
from labs.kit.mystery import troupe
from labs.kit.mystery.troupe import Troupe

LAB_FOLDER = "11_mystery_servers"


def add_parser(commands: Any, shared: argparse.ArgumentParser) -> None:
    about = "start and stop the six servers of lab 11"
    parser = commands.add_parser("mystery", parents=[shared], help=about, description=f"{about.capitalize()}.")
    parser.add_argument("what", choices=("up", "status", "down"))
    parser.add_argument("--seed", type=int, default=None, help="another order of the servers (default: your own)")
    parser.add_argument("--folder", type=Path, default=None, help="where your copies are (default: mylabs, or MYLABS)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    top = options.folder.expanduser().absolute() if options.folder else workbook.default_folder()
    folder = top / LAB_FOLDER
    return {"up": _up, "status": _status, "down": _down}[options.what](folder, options)


def _up(folder: Path, options: argparse.Namespace) -> int:
    if not options.json:
        print("starting six servers on this machine, for this machine only ...", file=sys.stderr)
    _tell(troupe.start(folder, options.seed), True, options)
    return 0


def _status(folder: Path, options: argparse.Namespace) -> int:
    known, is_running = troupe.read(folder), troupe.is_running(folder)
    if known is None:
        print(json.dumps({"running": False}) if options.json else "no servers have been started: `labs mystery up`")
        return 0
    _tell(known, is_running, options)
    return 0


def _down(folder: Path, options: argparse.Namespace) -> int:
    was_running = troupe.stop(folder)
    if options.json:
        print(json.dumps({"running": False, "stopped": was_running}))
    else:
        print("stopped" if was_running else "no servers were running")
    return 0


def _tell(known: Troupe, is_running: bool, options: argparse.Namespace) -> None:
    """Addresses only: who is who is the exercise."""
    if options.json:
        print(json.dumps({"running": is_running, "base_urls": known.base_urls}))
        return
    print("\n".join(f"{letter}  {url}" for letter, url in known.base_urls.items()))
    print("running; `labs mystery down` stops them" if is_running else "not running; `labs mystery up` starts them")
