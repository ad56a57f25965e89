"""What a server tells about its pages, in the record: the same for two servers that differ only in a cache switch."""

from __future__ import annotations

import pytest

from labbook.burst import measure_burst
from labbook.identity import build_of, kv_precision
from labbook.measure import measure

LLAMA_PROPS = {
    "model_ftype": "Q4_1",
    "model_path": "/home/somebody/models/secret.gguf",
    "build_info": "b11434-0a1b2c3",
    "total_slots": 2,
}
LLAMA_MODELS = {"data": [{"id": "m1", "meta": {"n_vocab": 49152, "n_params": 134515008, "size": 98000000}}]}


def run(state) -> dict:
    return measure(state.url, prefix_words=40, timeout_s=10.0)


def test_labels_of_the_metrics_page_that_change_a_page_are_the_identity(serve) -> None:
    labels = ',kv_bits="8",kv_group_size="64",num_pages="512",prefix_cache="True",kv_dtype="float16"'
    record = run(serve(config_labels=labels))
    expected = {"block_size": "16", "kv_dtype": "float16", "kv_bits": "8", "kv_group_size": "64"}
    assert record["identity"] == expected
    assert record["kv_precision"] == "8 bits, groups of 64"


def test_a_cache_switch_and_the_size_of_the_pool_change_no_identity(serve) -> None:
    on = run(serve(config_labels=',prefix_cache="True",num_pages="512"'))
    off = run(serve(config_labels=',prefix_cache="False",num_pages="64"', cache=False))
    assert on["identity"] == off["identity"] is not None


def test_llama_server_tells_by_its_properties_and_no_path_is_kept(serve) -> None:
    record = run(serve(engine="llamacpp", timings=True, facts={"/props": LLAMA_PROPS, "/v1/models": LLAMA_MODELS}))
    expected = {"model_ftype": "Q4_1", "n_vocab": 49152, "n_params": 134515008, "size": 98000000}
    assert record["identity"] == expected
    assert (record["engine_version"], record["kv_precision"]) == ("b11434-0a1b2c3", None)
    assert "cache_config_info" in record["absent"]["kv_precision"]
    assert "somebody" not in str(record)


def test_the_root_of_a_model_is_named_without_its_folder(serve) -> None:
    models = {"data": [{"id": "m1", "root": "/data/models/SmolLM2-135M-Instruct/"}]}
    assert run(serve(facts={"/v1/models": models}))["identity"]["root"] == "SmolLM2-135M-Instruct"


def test_a_server_that_tells_nothing_has_no_identity_and_the_reason_stands_there(serve) -> None:
    record = run(serve(metrics=False))
    assert record["identity"] is record["kv_precision"] is record["engine_version"] is None
    assert {"identity", "kv_precision", "engine_version"} <= record["absent"].keys()


def test_the_version_and_the_fingerprint_are_asked_from_the_server(serve) -> None:
    record = run(serve(facts={"/version": {"version": "0.32.0"}}, system_fingerprint="fp-1"))
    assert (record["engine_version"], record["system_fingerprint"]) == ("0.32.0", "fp-1")


@pytest.mark.parametrize(
    ("fingerprint", "engine", "version"),
    [
        ("0.32.2-0.32.4-Linux-x86_64", "mlx-lm", "0.32.2"),
        ("vllm-0.32.0-0a7da021", "vllm", "0.32.0"),
        ("minivllm-0.1.0", "minivllm", "0.1.0"),
        ("b11434-0a1b2c3", "llama-server", "b11434-0a1b2c3"),
        ("fp_44709d6fcb", None, None),
        (None, None, None),
    ],
)
def test_an_answer_may_be_signed_by_its_engine(fingerprint, engine, version) -> None:
    assert build_of(fingerprint) == (engine, version)


def test_a_server_without_counters_is_named_by_its_answers(serve) -> None:
    record = run(serve(metrics=False, system_fingerprint="0.32.2-0.32.4-Linux-x86_64"))
    assert (record["engine"], record["engine_version"]) == ("mlx-lm", "0.32.2")


def test_a_burst_carries_the_identity_too(serve) -> None:
    record = measure_burst(serve().url, 2, prefix_words=20, timeout_s=10.0)
    assert (record["identity"], record["kv_precision"]) == ({"block_size": "16"}, None)
    assert "kv_precision" in record["absent"]


@pytest.mark.parametrize(
    ("config", "precision"),
    [
        ({"kv_dtype": "auto", "kv_bits": "None"}, "auto"),
        ({"cache_dtype": "fp8_e5m2"}, "fp8_e5m2"),
        ({"kv_bits": "4"}, "4 bits"),
        ({"cache_dtype": "None"}, None),
        ({}, None),
    ],
)
def test_kv_precision_is_told_in_the_servers_own_words(config: dict, precision: str | None) -> None:
    assert kv_precision(config) == precision
