"""The engine table: what the messages and the notebooks take from it, and that nobody has to keep its page in step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labbook.cli import main
from labbook.engines import Engine, Option, engine, engines, how_to_ask, how_to_turn
from labbook.engines_cli import markdown
from labbook.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"

# What an engineer looks for first.
NEEDED = {
    "llama-server": "--cache-prompt --no-cache-prompt --parallel --metrics --slots --slot-save-path --cache-type-k "
    "--cache-type-v",
    "vllm": "--enable-prefix-caching --no-enable-prefix-caching --kv-cache-dtype --enable-prompt-tokens-details "
    "--block-size cache_salt",
    "sglang": "--disable-radix-cache --enable-metrics --enable-cache-report --kv-cache-dtype",
    "mlx-lm": "--prompt-cache-size --kv-bits --quantized-kv-start",
}


@pytest.mark.parametrize("name", NEEDED)
def test_the_table_has_what_an_engineer_looks_for(name: str) -> None:
    assert set(NEEDED[name].split()) <= {option.name for option in engine(name).options}


@pytest.mark.parametrize("row", engines(), ids=lambda row: row.name)
def test_every_engine_can_be_turned_off_enlarged_and_quantized(row: Engine) -> None:
    assert all(how_to_turn(turn, row.name) for turn in ("off", "enlarge", "quantize"))


@pytest.mark.parametrize("row", engines(), ids=lambda row: row.name)
def test_every_row_says_what_it_does_in_sentences_and_stands_there_once(row: Engine) -> None:
    options = row.options
    names = [option.name for option in options]
    assert len(names) == len(set(names))
    assert [option.name for option in options if not option.what.endswith(".") or not option.effect.endswith(".")] == []
    assert [option.name for option in options if (option.kind == "flag") != option.name.startswith("--")] == []


def test_a_missing_signal_is_asked_for_by_the_options_of_every_engine_that_has_one() -> None:
    assert how_to_ask("cached_tokens") == "(vLLM: --enable-prompt-tokens-details; SGLang: --enable-cache-report)"
    assert how_to_ask("counters") == "(SGLang: --enable-metrics; llama-server: --metrics)"


def test_a_known_engine_is_asked_by_its_own_option_or_by_none() -> None:
    assert how_to_ask("cached_tokens", "sglang") == "(--enable-cache-report)"
    assert how_to_ask("cached_tokens", "mlx-lm") == how_to_ask("counters", "vllm") == ""


def test_an_engine_that_is_not_in_the_table_gets_the_general_answer() -> None:
    assert how_to_ask("cached_tokens", "my-gateway") == how_to_ask("cached_tokens")
    assert how_to_turn("off", "my-gateway") == ""


def test_an_engines_switches_are_named() -> None:
    assert how_to_turn("on", "vllm") == "--enable-prefix-caching"
    assert how_to_turn("off", "llama-server") == "--no-cache-prompt, cache_prompt"


@pytest.mark.parametrize("wrong", [{"turn": "up"}, {"source": "rumour"}, {"kind": "knob"}, {"tells": "all"}])
def test_a_row_with_a_word_of_its_own_is_refused(wrong: dict[str, str]) -> None:
    given = {"turn": "on", "what": "w.", "default": "d", "source": "captured", "effect": "e.", **wrong}
    with pytest.raises(ValueError, match=f"--flag has {next(iter(wrong))}="):
        Option(name="--flag", **given)


def test_an_unknown_name_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="'tgi' is not in the table: choose one of vllm, sglang"):
        engine("tgi")
    assert main(["engines", "tgi"]) == 2
    assert "choose one of" in capsys.readouterr().err


def test_one_engine_is_printed_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "vllm"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("vllm: vLLM, 0.32.0") and "sglang" not in text
    assert "--block-size  [order; default 16; 128 in the CPU build; captured]" in text


def test_the_table_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told] == [row.name for row in engines()]
    option = next(option for option in told[0]["options"] if option["name"] == "--enable-prompt-tokens-details")
    assert (option["tells"], option["source"], option["kind"]) == ("cached_tokens", "captured", "flag")


def test_the_page_for_readers_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "--markdown"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(encoding="utf-8"), (
        "run labbook engines --markdown > docs/engines.md"
    )


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    [line] = [line for line in markdown([engine("vllm")]).splitlines() if line.startswith("| `--block-size`")]
    assert line.count(" | ") == 5
