"""The engine table, the doubles and the programs installed here agree about the flags there are."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import pytest

from labbook.engines import engine
from labs.kit.doubles import DIALECTS, Faults
from labs.kit.doubles.dialect import FlagParser
from minivllm.server.flags import add_engine_flags


def flags_in_table(name: str) -> set[str]:
    return {option.name.split()[0] for option in engine(name).options if option.kind == "flag"}


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    return {text for action in parser._actions for text in action.option_strings if text.startswith("--")}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_double_takes_only_flags_that_the_table_explains(name: str) -> None:
    parser = FlagParser(add_help=False)
    DIALECTS[name]("tiny", [], Faults()).add_flags(parser)
    not_named = {"--no-slots"}  # the opposite of one that is on by default
    assert flags_of(parser) - not_named <= flags_in_table(name)


def test_the_table_names_only_flags_that_the_mini_engine_has() -> None:
    parser = argparse.ArgumentParser()
    add_engine_flags(parser)
    assert flags_in_table("minivllm") <= flags_of(parser)


def test_the_table_names_only_flags_that_the_installed_mlx_lm_has() -> None:
    found = importlib.util.find_spec("mlx_lm")
    assert found is not None and found.origin is not None
    server = Path(found.origin).with_name("server.py").read_text(encoding="utf-8")
    assert [flag for flag in sorted(flags_in_table("mlx-lm")) if f'"{flag}"' not in server] == []


def test_a_double_serves_the_version_that_the_table_describes() -> None:
    versions = {name: dialect.version for name, dialect in DIALECTS.items()}
    assert versions["vllm"] == engine("vllm").version and versions["mlx-lm"] == engine("mlx-lm").version
    assert engine("llama-server").version.removeprefix("build ") in versions["llama-server"]
