"""Which attention an engine gets on which machine."""

from __future__ import annotations

import dataclasses

import pytest

from minivllm.attention import choice
from minivllm.attention.choice import RUNNER_VARIABLE, choose_attention
from minivllm.attention.metal import MetalAttention
from minivllm.attention.portable import PortableAttention
from minivllm.backend import mx
from minivllm.cache.kv_format import KVFormat
from minivllm.cache.storage import KVStorage
from minivllm.config import ConfigError
from minivllm.metal.cuda import cuda_kernel
from minivllm.metal.runner import metal_kernel
from tests.metal.paged_case import SPEC


def storage(head_dim: int = 64) -> KVStorage:
    return KVStorage(dataclasses.replace(SPEC, head_dim=head_dim), 2, 4, KVFormat("float32"))


def kernel_maker(attention: str, head_dim: int = 64) -> object:
    """None for the portable path."""
    chosen = choose_attention(attention, storage(head_dim))
    if isinstance(chosen, PortableAttention):
        return None
    assert isinstance(chosen, MetalAttention)
    return chosen._kernels._make_kernel


@pytest.fixture(autouse=True)
def cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RUNNER_VARIABLE, raising=False)
    monkeypatch.setattr(choice, "is_cpu", True)


@pytest.fixture
def apple_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "is_cpu", False)
    monkeypatch.setattr(choice.mx.metal, "is_available", lambda: True)


@pytest.fixture
def nvidia_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "is_cpu", False)
    monkeypatch.setattr(choice.mx.metal, "is_available", lambda: False)


def test_a_cpu_takes_the_portable_path_by_itself() -> None:
    assert kernel_maker("auto") is None
    assert kernel_maker("portable") is None


def test_metal_without_a_gpu_is_an_error_that_names_the_runner() -> None:
    with pytest.raises(ConfigError, match=r"needs an Apple GPU.*MINIVLLM_METAL_RUNNER=1 to run the kernel on the CPU"):
        kernel_maker("metal")


@pytest.mark.usefixtures("apple_gpu")
def test_an_apple_gpu_takes_the_kernel_unless_told_otherwise() -> None:
    assert kernel_maker("auto") is mx.fast.metal_kernel
    assert kernel_maker("metal") is mx.fast.metal_kernel
    assert kernel_maker("portable") is None


@pytest.mark.parametrize("attention", ["auto", "metal"])
def test_the_runner_takes_the_place_of_the_gpu_when_asked(monkeypatch: pytest.MonkeyPatch, attention: str) -> None:
    monkeypatch.setenv(RUNNER_VARIABLE, "1")
    assert kernel_maker(attention) is metal_kernel
    assert kernel_maker("portable") is None


@pytest.mark.usefixtures("nvidia_gpu")
def test_an_nvidia_gpu_takes_the_cuda_sibling_only_when_told() -> None:
    assert kernel_maker("auto") is None
    assert kernel_maker("cuda") is cuda_kernel


@pytest.mark.parametrize("gpu", [None, "apple_gpu"])
def test_cuda_without_its_gpu_is_an_error(gpu: str | None, request: pytest.FixtureRequest) -> None:
    if gpu:
        request.getfixturevalue(gpu)
    with pytest.raises(ConfigError, match="attention='cuda' needs an NVIDIA GPU"):
        kernel_maker("cuda")


@pytest.mark.usefixtures("apple_gpu")
def test_a_head_size_without_a_kernel_is_portable_by_itself_and_an_error_when_asked() -> None:
    assert kernel_maker("auto", head_dim=72) is None
    with pytest.raises(ConfigError, match=r"head size 72, only for 32, 64, 80, 96, 128: use attention='portable'"):
        kernel_maker("metal", head_dim=72)
