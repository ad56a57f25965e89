"""Slot files as bytes and in their folder: the format, what counts as ours, what goes first, and what a key opens."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minivllm.cache import slot_encryption, slot_folder
from minivllm.cache.slot_errors import SlotError, SlotFileError, SlotNameError
from minivllm.cache.slot_file import SlotContent, Tensor, decode, encode, salt_digest
from minivllm.cache.slot_retention import prune, slot_files, verify
from minivllm.cli import main
from minivllm.config import ConfigError

KEY = "sixteen characters at least"


def content(num_tokens: int = 3, salt: str | None = None) -> SlotContent:
    keys = Tensor("F32", (num_tokens, 1, 2), bytes(range(8)) * num_tokens)
    identity = {"weights_id": "w", "kv_bits": None, "rope_scaling": {"factor": 2.0}}
    return SlotContent(
        "tiny", tuple(range(5, 5 + num_tokens)), salt_digest(salt), identity, {"layers.0.keys.full": keys}
    )


def saved(folder: Path, name: str, age_s: int, num_tokens: int = 3) -> Path:
    slot_folder.write(folder / name, content(num_tokens))
    os.utime(folder / name, (1_000_000 - age_s, 1_000_000 - age_s))
    return folder / name


def test_what_is_encoded_is_decoded() -> None:
    assert decode(encode(content(salt="s"))) == content(salt="s")


def test_the_file_is_safetensors_with_the_identity_field_by_field() -> None:
    data = encode(content())
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata = header["__metadata__"]
    assert (metadata["format"], metadata["version"], metadata["num_tokens"]) == ("minivllm-slot", "1", "3")
    assert (metadata["identity.weights_id"], metadata["identity.kv_bits"], metadata["salt"]) == ('"w"', "null", "none")
    assert header["layers.0.keys.full"]["dtype"] == "F32"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_bit_can_be_flipped_and_no_byte_cut_off(data: st.DataObject) -> None:
    whole = encode(content())
    place, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
    for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]):
        with pytest.raises(SlotFileError, match=r"\w+ \w+"):
            decode(damaged)


@pytest.mark.parametrize("name", ["a", "a.bin", "9", "talk_1-2+3=4@5", "A" * 200])
def test_a_plain_name_lies_in_the_folder(tmp_path: Path, name: str) -> None:
    assert slot_folder.path_in(tmp_path, name) == Path(os.path.realpath(tmp_path)) / name


@given(st.text(max_size=12))
def test_a_name_is_refused_or_a_direct_child(name: str) -> None:
    folder = Path("/nowhere/slots")
    try:
        path = slot_folder.path_in(folder, name)
    except SlotNameError:
        return
    assert path.parent == folder and path.name == name


def test_links_are_resolved_before_they_are_judged(tmp_path: Path) -> None:
    folder = tmp_path / "slots"
    folder.mkdir()
    (folder / "inside").symlink_to(folder / "real")
    (folder / "outside").symlink_to(tmp_path / "real")
    assert slot_folder.path_in(folder, "inside").name == "real"
    with pytest.raises(SlotNameError, match="leads out of the folder"):
        slot_folder.path_in(folder, "outside")


def test_the_oldest_go_until_the_rest_fits_and_files_of_others_stay(tmp_path: Path) -> None:
    files = [saved(tmp_path, name, age_s) for name, age_s in (("new", 1), ("old", 9), ("middle", 5))]
    num_bytes = files[0].stat().st_size
    for name, data in (("notes.txt", b"not ours"), ("weights.safetensors", encode(content())[:8]), (".hidden", b"x")):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder").mkdir()
    assert [info.name for info in slot_files(tmp_path)] == ["old", "middle", "new"]
    assert [info.name for info in prune(tmp_path, 2 * num_bytes, dry_run=True)] == ["old"]
    assert (tmp_path / "old").exists()
    assert [info.name for info in prune(tmp_path, num_bytes, keep=tmp_path / "old")] == ["middle", "new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".hidden",
        "folder",
        "notes.txt",
        "old",
        "weights.safetensors",
    ]


def test_what_a_killed_writer_left_goes_and_what_a_writer_holds_stays(tmp_path: Path) -> None:
    left, held = (tmp_path / f".minivllm-slot-{digit * 16}.tmp" for digit in "ab")
    left.write_bytes(b"half")
    with open(held, "wb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        prune(tmp_path, None)
        assert (left.exists(), held.exists()) == (False, True)


def test_a_file_above_the_limit_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(SlotError, match="above the limit of 10"):
        slot_folder.write(tmp_path / "a", content(), limit_bytes=10)
    assert list(tmp_path.iterdir()) == []


def test_the_command_lists_verifies_and_prunes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--slot-save-path", str(tmp_path), "--json"]
    saved(tmp_path, "old", 9, num_tokens=4)
    saved(tmp_path, "new", 1)
    assert main(["slots", "list", *folder]) == 0
    listed = json.loads(capsys.readouterr().out)["files"]
    assert [(info["name"], info["num_tokens"], info["model"]) for info in listed] == [
        ("old", 4, "tiny"),
        ("new", 3, "tiny"),
    ]
    assert main(["slots", "verify", *folder]) == 0
    damaged = (tmp_path / "new").read_bytes()
    (tmp_path / "new").write_bytes(damaged[:-1] + b"x")
    capsys.readouterr()
    assert main(["slots", "verify", *folder]) == 1
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert faults["old"] is None and "checksum" in faults["new"]
    assert main(["slots", "prune", *folder, "--slot-save-limit", f"{(tmp_path / 'new').stat().st_size}B"]) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": ["old"], "dry_run": False}
    assert main(["slots", "list", "--slot-save-path", str(tmp_path / "absent")]) == 2


def test_a_key_that_is_missing_or_short_is_refused_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOT_KEY", "short")
    with pytest.raises(ConfigError, match="the key in 'SLOT_KEY': the variable is 5 characters"):
        slot_encryption.passphrase_from("SLOT_KEY")
    with pytest.raises(ConfigError, match="is unset or empty"):
        slot_encryption.passphrase_from("SLOT_KEY_THAT_IS_NOT_THERE")
    assert slot_encryption.passphrase_from(None) is None


def test_without_the_library_a_key_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setenv("SLOT_KEY", KEY)
    with pytest.raises(ConfigError, match="install the extra 'encryption'"):
        slot_encryption.passphrase_from("SLOT_KEY")


def test_an_encrypted_file_shows_nothing_and_opens_with_its_key_alone(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="the extra 'encryption' is not installed")
    path = tmp_path / "a"
    slot_folder.write(path, content(), KEY)
    data = path.read_bytes()
    assert b'minivllm-slot"' not in data and b"token_ids" not in data and slot_folder.is_ours(path)
    assert slot_folder.read(path, KEY)[0] == content()
    with pytest.raises(SlotFileError, match="another key, or is damaged"):
        slot_folder.read(path, KEY + "!")
    with pytest.raises(SlotFileError, match="it is encrypted: name the environment variable"):
        slot_folder.read(path)
    (info,) = slot_files(tmp_path)
    assert (info.is_encrypted, info.num_tokens, info.is_salted) == (True, None, None)
    assert verify(tmp_path, KEY) == {"a": None}
    for place in (len(slot_encryption.MAGIC), 50, 60, len(data) - 1):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(SlotFileError, match="another key, or is damaged"):
            slot_folder.read(path, KEY)
    path.write_bytes(data[:60])
    with pytest.raises(SlotFileError):
        slot_folder.read(path, KEY)


def test_two_files_of_one_conversation_have_nothing_in_common(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="the extra 'encryption' is not installed")
    data = [slot_encryption.encrypt(b"the same" * 10, KEY) for _ in range(2)]
    start = len(slot_encryption.MAGIC)
    assert data[0][start : start + 28] != data[1][start : start + 28]
    assert data[0][start + 28 :] != data[1][start + 28 :]


def test_with_a_key_a_plain_file_is_refused(tmp_path: Path) -> None:
    slot_folder.write(tmp_path / "a", content())
    with pytest.raises(SlotFileError, match="it is not encrypted, and a key is set"):
        slot_folder.read(tmp_path / "a", KEY)
