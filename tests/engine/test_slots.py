"""A conversation that survives the process: saved, verified, restored, and continued as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minivllm import LLM, SamplingParams
from minivllm.backend import mx
from minivllm.cache import audit
from minivllm.cache.slot_errors import SlotBusyError, SlotError, SlotFileError
from minivllm.config import ConfigError
from minivllm.slots import SlotFileOptions
from tests.engine.oracle import LOGIT_TOLERANCE, Oracle

MakeLLM = Callable[..., LLM]
GREEDY = SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True)
FORMATS: dict[str, dict[str, Any]] = {
    "float32": {},
    "bfloat16": {"kv_dtype": "bfloat16"},
    "8bit": {"kv_bits": 8, "kv_group_size": 32},
    "4bit_behind_a_full_head": {"kv_bits": 4, "kv_group_size": 32, "quantized_kv_start": 16},
}


def tokens(count: int, seed: int = 0) -> list[int]:
    draw = random.Random(seed)
    return [draw.randrange(5, 500) for _ in range(count)]


def state(llm: LLM) -> tuple[Any, ...]:
    """Everything that a refused restore must leave alone."""
    stats = {name: value for name, value in llm.stats().items() if name.startswith("pages_")}
    return stats, [(slot.token_ids, slot.num_held_tokens) for slot in llm.slots]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("num_tokens", [20, 74, 75])
def test_a_restored_conversation_goes_on_as_an_uninterrupted_one(
    make_llm: MakeLLM, tmp_path: Path, kind: str, num_tokens: int
) -> None:
    llm = make_llm(**FORMATS[kind])
    first = llm.generate([tokens(num_tokens)], GREEDY)[0]
    saved = llm.slots[0].save(tmp_path / "talk")
    assert (saved.num_tokens, saved.num_bytes) == (num_tokens + 5, (tmp_path / "talk").stat().st_size)
    following = [*first.prompt_token_ids, *first.token_ids, 7, 8, 9]
    expected = llm.generate([following], GREEDY)[0]
    other = make_llm(num_pages=23, max_active_requests=3, **FORMATS[kind])
    assert other.slots[2].restore(tmp_path / "talk").num_tokens == num_tokens + 5
    audit.check(other.engine)
    assert other.stats()["lookup_requests"] == other.stats()["published_tokens"] == 0, "nobody asked for anything yet"
    output = other.generate([following], GREEDY)[0]
    assert output.metrics.cached_tokens == num_tokens + 5
    assert output.token_ids == expected.token_ids


def test_position_goes_on_behind_a_restored_partial_page(
    make_llm: MakeLLM, tmp_path: Path, tiny_oracle: Oracle
) -> None:
    """AN-06: 40 tokens in three pages; the next one is number 40 and lies in the third page."""
    make_llm().generate([tokens(40)], SamplingParams(max_tokens=1))
    llm = make_llm()
    llm.generate([tokens(40)], SamplingParams(max_tokens=1))
    llm.slots[0].save(tmp_path / "forty")
    other = make_llm()
    other.slots[0].restore(tmp_path / "forty")
    output = other.generate([[*tokens(40), 9]], GREEDY)[0]
    assert (output.metrics.cached_tokens, output.metrics.computed_tokens) == (40, 1)
    tiny_oracle.assert_greedy(output.prompt_token_ids, output.token_ids)
    logits = other.logits([*tokens(40), 9, *output.token_ids])
    assert (
        np.abs(logits - tiny_oracle.logits([*tokens(40), 9, *output.token_ids])[-len(logits) :]).max() < LOGIT_TOLERANCE
    )


def test_restored_pages_are_the_same_bytes_and_found_from_any_slot(make_llm: MakeLLM, tmp_path: Path) -> None:
    llm, other = make_llm(), make_llm()
    llm.generate([tokens(100)], GREEDY)
    llm.slots[0].save(tmp_path / "a")
    other.slots[3].restore(tmp_path / "a")
    pages = [one.engine.manager.index.lookup(tokens(100), 6, None) for one in (llm, other)]
    stored = [
        [one.engine.storage.page_bytes(page) for page in ids] for one, ids in zip((llm, other), pages, strict=True)
    ]
    assert len(stored[0]) == 6
    assert stored[0] == stored[1]
    assert other.generate([[*tokens(100), 9]], GREEDY, id_slot=0)[0].metrics.cached_tokens == 96


@pytest.mark.parametrize(
    ("settings", "field", "theirs", "ours"),
    [
        ({"page_size": 8}, "page_size", "16", "8"),
        ({"kv_dtype": "float16"}, "kv_dtype", "'float32'", "'float16'"),
        ({"kv_bits": 8, "kv_group_size": 32}, "kv_bits", "None", "8"),
    ],
)
def test_a_file_of_another_setting_is_refused_with_the_field_and_both_values(
    make_llm: MakeLLM, tmp_path: Path, settings: dict[str, Any], field: str, theirs: str, ours: str
) -> None:
    """KQ-05"""
    llm, other = make_llm(), make_llm(**settings)
    llm.generate([tokens(40)], GREEDY)
    llm.slots[0].save(tmp_path / "a")
    before = state(other)
    with pytest.raises(SlotFileError, match=f"{field} is {theirs} in the file and {ours} here"):
        other.slots[0].restore(tmp_path / "a")
    assert state(other) == before


@pytest.mark.parametrize("field", ["weights_id", "tokenizer_digest", "rope_theta", "num_layers", "adapter"])
def test_a_file_of_another_model_is_refused_by_every_field_of_its_identity(
    make_llm: MakeLLM, tmp_path: Path, field: str
) -> None:
    import dataclasses

    llm = make_llm()
    llm.generate([tokens(40)], GREEDY)
    ours = llm.engine.identity
    llm.engine.identity = dataclasses.replace(ours, **{field: "other"})
    llm.slots[0].save(tmp_path / "a")
    llm.engine.identity = ours
    with pytest.raises(SlotFileError, match=f"{field} is 'other' in the file and .* here"):
        llm.slots[1].restore(tmp_path / "a")


def test_a_salt_is_asked_for_and_is_not_in_the_file(make_llm: MakeLLM, tmp_path: Path) -> None:
    """PC-06"""
    llm, other = make_llm(), make_llm()
    llm.generate([tokens(40)], GREEDY, cache_salt="tenant-7")
    llm.slots[0].save(tmp_path / "a")
    assert b"tenant-7" not in (tmp_path / "a").read_bytes()
    for salt in (None, "", "tenant-8"):
        with pytest.raises(SlotFileError, match="salt is 'sha256:"):
            other.slots[0].restore(tmp_path / "a", cache_salt=salt)
    other.slots[0].restore(tmp_path / "a", cache_salt="tenant-7")
    hits = [
        other.generate([tokens(40)], GREEDY, cache_salt=salt)[0].metrics.cached_tokens
        for salt in (None, "tenant-8", "tenant-7")
    ]
    assert hits == [0, 0, 32]


def test_overwriting_a_file_after_it_was_restored_from_changes_nothing(make_llm: MakeLLM, tmp_path: Path) -> None:
    """PS-06"""
    llm, other = make_llm(), make_llm()
    first = llm.generate([tokens(60)], GREEDY, id_slot=0)[0]
    llm.generate([tokens(60, seed=1)], GREEDY, id_slot=1)
    llm.slots[0].save(tmp_path / "a")
    following = [*first.prompt_token_ids, *first.token_ids, 9]
    expected = llm.generate([following], GREEDY)[0].token_ids
    other.slots[0].restore(tmp_path / "a")
    llm.slots[1].save(tmp_path / "a")
    size = (tmp_path / "a").stat().st_size
    with open(tmp_path / "a", "r+b") as file:
        file.write(b"\0" * size)
    assert other.generate([following], GREEDY)[0].token_ids == expected


def test_a_sequence_that_does_not_fit_is_refused_and_one_that_fits_evicts_as_a_request_does(
    make_llm: MakeLLM, tmp_path: Path
) -> None:
    llm = make_llm()
    llm.generate([tokens(100)], GREEDY)
    llm.slots[0].save(tmp_path / "a")
    small = make_llm(num_pages=6)
    with pytest.raises(SlotFileError, match="105 tokens do not fit 96"):
        small.slots[0].restore(tmp_path / "a")
    tight = make_llm(num_pages=8)
    tight.generate([tokens(90, seed=3)], GREEDY)
    tight.slots[1].restore(tmp_path / "a")
    assert tight.slots[1].num_held_tokens == 105
    assert tight.slots[0].num_held_tokens < 95
    audit.check(tight.engine)


def test_a_restore_beside_requests_that_need_the_pages_is_refused_and_changes_nothing(
    make_llm: MakeLLM, tmp_path: Path
) -> None:
    llm = make_llm()
    llm.generate([tokens(100)], GREEDY)
    llm.slots[0].save(tmp_path / "a")
    busy = make_llm(num_pages=8, max_batched_tokens=16)
    busy.engine.add_request(tokens(90, seed=1), GREEDY, id_slot=0)
    busy.engine.step()
    before = state(busy)
    with pytest.raises(SlotError, match="7 pages are needed beside the requests that run"):
        busy.slots[1].restore(tmp_path / "a")
    with pytest.raises(SlotBusyError, match="slot 0 is busy"):
        busy.slots[0].restore(tmp_path / "a")
    assert state(busy) == before
    while busy.engine.has_unfinished_requests:
        busy.engine.step()


def test_what_was_evicted_is_not_saved_and_nothing_is_no_file(make_llm: MakeLLM, tmp_path: Path) -> None:
    llm = make_llm(num_pages=8)
    with pytest.raises(SlotError, match="slot 0 holds nothing"):
        llm.slots[0].save(tmp_path / "empty")
    llm.generate([tokens(60)], GREEDY, id_slot=0)
    llm.generate([tokens(90, seed=1)], GREEDY, id_slot=1)
    held = llm.slots[0].num_held_tokens
    assert 0 < held < 64 and held % 16 == 0
    assert llm.slots[0].save(tmp_path / "part").num_tokens == held
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_a_save_that_fails_leaves_the_old_file_and_no_other(
    make_llm: MakeLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PS-10"""
    llm = make_llm()
    llm.generate([tokens(40)], GREEDY)
    llm.slots[0].save(tmp_path / "a")
    old, before = (tmp_path / "a").read_bytes(), state(llm)

    def no_space(*_: object) -> int:
        raise OSError(28, "No space left on device")

    for call in ("write", "fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, no_space)
            with pytest.raises(SlotError, match="a cannot be written: No space left on device"):
                llm.slots[0].save(tmp_path / "a")
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        assert (tmp_path / "a").read_bytes() == old
        assert state(llm) == before


def test_a_file_that_is_not_ours_is_never_replaced(make_llm: MakeLLM, tmp_path: Path) -> None:
    llm = make_llm()
    llm.generate([tokens(40)], GREEDY)
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(SlotError, match="is there and is no slot file"):
        llm.slots[0].save(tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text() == "three years of work"


def test_a_plain_name_lies_in_the_folder_of_slot_files_which_is_this_users_alone(
    make_llm: MakeLLM, tmp_path: Path
) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    llm = make_llm(slot_save_path=tmp_path / "open")
    llm.generate([tokens(40)], GREEDY)
    llm.slots[0].save("talk")
    assert (tmp_path / "open" / "talk").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="slot_save_path"):
        make_llm(slot_save_path=tmp_path / "file")


def test_an_encrypted_conversation_is_restored_with_its_key_alone(
    make_llm: MakeLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography", reason="the extra 'encryption' is not installed")
    monkeypatch.setenv("SLOT_KEY", "sixteen characters at least")
    llm = make_llm(slot_options=SlotFileOptions(key_env="SLOT_KEY"))
    llm.generate([tokens(40)], GREEDY)
    llm.slots[0].save(tmp_path / "a")
    assert llm.slots[1].restore(tmp_path / "a").num_tokens == 45
    with pytest.raises(SlotFileError, match="it is encrypted"):
        make_llm().slots[0].restore(tmp_path / "a")
    monkeypatch.setenv("SLOT_KEY", "another key of that length")
    with pytest.raises(SlotFileError, match="another key"):
        make_llm(slot_options=SlotFileOptions(key_env="SLOT_KEY")).slots[0].restore(tmp_path / "a")


def test_saving_under_a_limit_deletes_the_oldest_slot_files_and_nothing_else(make_llm: MakeLLM, tmp_path: Path) -> None:
    llm = make_llm(slot_save_path=tmp_path, slot_options=SlotFileOptions(save_limit_bytes=100_000))
    (tmp_path / "notes.txt").write_bytes(b"n" * 200_000)
    llm.generate([tokens(40)], GREEDY)
    for number, name in enumerate(("first", "second", "third")):
        llm.slots[0].save(name)
        os.utime(tmp_path / name, (number, number))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "second", "third"]


def mutated(whole: bytes, foreign: bytes, draw: random.Random) -> bytes:
    """One of many ways in which a file can be wrong; never equal to `whole`."""
    kind = draw.randrange(7)
    header_bytes = 8 + int.from_bytes(whole[:8], "little")
    if kind == 0:
        place, bit = draw.randrange(len(whole)), 1 << draw.randrange(8)
        return whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :]
    if kind == 1:
        place, bit = draw.randrange(header_bytes), 1 << draw.randrange(8)
        return whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :]
    if kind == 2:
        return whole[: draw.randrange(len(whole))]
    if kind == 3:
        other_header = 8 + int.from_bytes(foreign[:8], "little")
        return draw.choice(
            [foreign[:other_header] + whole[header_bytes:], whole[:header_bytes] + foreign[other_header:]]
        )
    if kind == 4:
        return whole + draw.randbytes(draw.randrange(1, 40))
    if kind == 5:
        return draw.choice([b"{}", b'{"__metadata__": {}}', b"GIF89a", draw.randbytes(200), b"\0" * 4096])
    middle = len(whole) // 2
    return whole[middle:] + whole[:middle]


def test_a_thousand_mutated_files_are_each_refused_with_a_reason_and_nothing_changes(
    make_llm: MakeLLM, tmp_path: Path
) -> None:
    """PS-02"""
    llm = make_llm(debug_poison_pages=False)
    llm.generate([tokens(40)], GREEDY, id_slot=0)
    llm.generate([tokens(64, seed=1)], GREEDY, id_slot=1)
    llm.slots[0].save(tmp_path / "whole")
    mx.save_safetensors(str(tmp_path / "foreign.safetensors"), {"a": mx.zeros((100, 7))}, {"format": "mlx"})
    whole, foreign = (tmp_path / "whole").read_bytes(), (tmp_path / "foreign.safetensors").read_bytes()
    draw, before, reasons = random.Random(6), state(llm), set()
    bad = tmp_path / "bad"
    for number in range(1000):
        bad.write_bytes(mutated(whole, foreign, draw))
        with pytest.raises(SlotFileError, match=r"^bad .*\w") as refusal:
            llm.slots[1].restore(bad)
        reasons.add(str(refusal.value)[:28])
        if number % 100 == 0:
            assert state(llm) == before
    assert state(llm) == before
    assert len(reasons) >= 4, reasons
    for odd in (tmp_path, tmp_path / "foreign.safetensors", tmp_path / "absent", Path("/dev/zero")):
        with pytest.raises(SlotFileError):
            llm.slots[1].restore(odd)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SlotFileError, match="no regular file"):
        llm.slots[1].restore(tmp_path / "pipe")
    assert state(llm) == before
    assert llm.generate([[*tokens(64, seed=1), 9]], GREEDY)[0].metrics.cached_tokens == 64


def forged(whole: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file with another header and a checksum that fits: whoever made it meant it."""
    from minivllm.cache import slot_file

    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    change(header)
    header["__metadata__"]["checksum"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")).encode()
    data = len(text).to_bytes(8, "little") + text + whole[8 + length :]
    import hashlib

    return data.replace(slot_file._ZEROS.encode(), hashlib.sha256(data).hexdigest().encode(), 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda header: header["__metadata__"].update(version="2"), "format version is '2'"),
        (lambda header: header["__metadata__"].update(num_tokens="44"), "has 45 token ids and claims '44'"),
        (lambda header: header["layers.0.keys.full"].update(shape=[45, 1, 64]), "this engine keeps"),
        (lambda header: header["layers.0.keys.full"].update(dtype="U32"), "this engine keeps"),
        (lambda header: header["layers.0.keys.full"].update(data_offsets=[0, 10**9]), "tensors cannot be read"),
        (lambda header: header.pop("token_ids"), "tensors cannot be read|no token ids"),
        (lambda header: header.update(extra=header.pop("layers.1.keys.full")), "is (missing|too many)"),
    ],
)
def test_a_header_that_was_changed_on_purpose_is_refused(
    make_llm: MakeLLM, tmp_path: Path, change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    llm = make_llm()
    llm.generate([tokens(40)], GREEDY)
    llm.slots[0].save(tmp_path / "a")
    (tmp_path / "bad").write_bytes(forged((tmp_path / "a").read_bytes(), change))
    before = state(llm)
    with pytest.raises(SlotFileError, match=reason):
        llm.slots[0].restore(tmp_path / "bad")
    assert state(llm) == before


NEW_PROCESS = """
    import json, sys
    from minivllm import LLM, EngineConfig, SamplingParams
    path, prompt = sys.argv[1], json.loads(sys.argv[2])
    llm = LLM("tiny", EngineConfig(num_pages=24, debug_poison_pages=True))
    restored = llm.slots[1].restore(path).num_tokens
    output = llm.generate([prompt], SamplingParams(max_tokens=6, temperature=0.0, ignore_eos=True))[0]
    print(json.dumps([restored, output.metrics.cached_tokens, list(output.token_ids)]), flush=True)
    import os; os._exit(0)
"""


def test_a_new_process_with_another_pool_goes_on_with_the_text_of_an_uninterrupted_run(
    make_llm: MakeLLM, tmp_path: Path
) -> None:
    llm = make_llm()
    first = llm.generate([tokens(120)], GREEDY)[0]
    llm.slots[0].save(tmp_path / "talk")
    following = [*first.prompt_token_ids, *first.token_ids, 9, 9]
    uninterrupted = list(llm.generate([following], GREEDY)[0].token_ids)
    command = [sys.executable, "-c", textwrap.dedent(NEW_PROCESS), str(tmp_path / "talk"), json.dumps(following)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [125, 125, uninterrupted]


MOMENTS = ("before", "within", "after_write", "before_flush", "after_flush", "before_rename", "after_rename", "at_end")


def die_at(moment: str) -> None:
    """Let this process kill itself at a named moment of its next save."""
    write, fsync, replace = os.write, os.fsync, os.replace

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def dying_write(descriptor: int, data: Any) -> int:
        if moment == "before":
            die()
        if moment == "within":
            write(descriptor, data[: len(data) // 2])
            die()
        count = write(descriptor, data)
        if moment == "after_write":
            die()
        return count

    def dying_fsync(descriptor: int) -> None:
        if moment == "before_flush":
            die()
        fsync(descriptor)
        if moment == "after_flush":
            die()

    def dying_replace(source: Any, target: Any) -> None:
        if moment == "before_rename":
            die()
        replace(source, target)
        if moment == "after_rename":
            die()

    os.write, os.fsync, os.replace = dying_write, dying_fsync, dying_replace  # type: ignore[assignment]


def test_kill_9_in_fifty_saves_always_leaves_the_old_or_the_new_conversation(make_llm: MakeLLM, tmp_path: Path) -> None:
    """The children fork off before they save, and only write bytes: no array is touched there."""
    from minivllm.cache import slot_folder

    llm = make_llm()
    for slot in range(2):
        llm.generate([tokens(40 + 20 * slot, seed=slot)], GREEDY, id_slot=slot)
        llm.slots[slot].save(tmp_path / f"talk-{slot}")
    contents = [slot_folder.read(tmp_path / f"talk-{slot}")[0] for slot in range(2)]
    lengths = {len(content.token_ids) for content in contents}
    target, other = tmp_path / "talk", make_llm()
    slot_folder.write(target, contents[0])
    seen = set()
    for number in range(50):
        moment = MOMENTS[number % len(MOMENTS)]
        child = os.fork()
        if child == 0:
            die_at(moment)
            slot_folder.write(target, contents[(number // len(MOMENTS) + 1) % 2])
            os.kill(os.getpid(), signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        restored = other.slots[0].restore(target).num_tokens
        assert restored in lengths
        seen.add((moment, restored))
    assert {restored for _, restored in seen} == lengths
    left = slot_folder.left_overs(tmp_path)
    assert len(left) == sum(MOMENTS[n % len(MOMENTS)] not in ("after_rename", "at_end") for n in range(50))
