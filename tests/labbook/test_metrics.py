"""Counters from metrics pages that servers really send, and from hostile ones (MT-01 to MT-11, N-1)."""

from pathlib import Path

import pytest

from labbook import metrics

DATA = Path(__file__).parent / "data"


def page(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def test_the_hostile_page_gives_150_hits_and_400_queries_for_m1() -> None:
    reading = metrics.read(page("hostile_metrics.txt"), prefix="lab", model="m1")
    assert (reading.hits, reading.queries) == (150, 400)
    assert reading.names == {"hits": "lab:prefix_cache_hits_total", "queries": "lab:prefix_cache_queries_total"}
    assert reading.why is None


def test_the_hostile_page_keeps_models_apart_and_rejects_one_line() -> None:
    reading = metrics.read(page("hostile_metrics.txt"), prefix="lab", model="m2")
    assert (reading.hits, reading.queries) == (7, None)
    assert reading.why == "lab:prefix_cache_queries_total counts the model(s) m1, not m2"
    assert reading.models == ("m1", "m2")
    assert reading.rejected_lines == (15,)


def test_labels_are_unescaped_exactly() -> None:
    samples, _ = metrics.parse(page("hostile_metrics.txt"))
    labels = [dict(sample.labels) for sample in samples]
    assert labels[0]["note"] == "{x}, y"
    assert labels[1]["note"] == 'say "hi"'
    assert labels[2]["path"] == "C:\\kv\\"
    assert labels[3]["url"] == "http://h:8000/v1?a=1#b"
    assert labels[5] == {"model": "line\nbreak", "a": ""}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9", 9),
        ("9.0", 9),
        ("1e+06", 1_000_000),
        ("4.879232e+06", 4_879_232),
        ("8.0E-4", 8e-4),
        ("9 1700000000123", 9),
    ],
)
def test_number_forms_that_are_read(text: str, value: float) -> None:
    assert metrics.read(f"lab:prefix_cache_hits_total {text}\n", prefix="lab").hits == value


@pytest.mark.parametrize("text", ["5n", "15.07 MB", "0x10", "1_000", "１２", "", "1,5"])
def test_number_forms_that_cost_only_their_line(text: str) -> None:
    other = 'lab:prefix_cache_hits_total{engine="1"} 40'
    reading = metrics.read(f'lab:prefix_cache_hits_total{{engine="0"}} {text}\n{other}\n', prefix="lab")
    assert reading.hits == 40
    assert reading.rejected_lines == (1,)


@pytest.mark.parametrize("text", ["NaN", "-nan", "+Inf", "-Inf", "1e400"])
def test_a_counter_that_is_no_finite_number_is_null_and_never_a_part_of_the_sum(text: str) -> None:
    other = 'lab:prefix_cache_hits_total{engine="1"} 40'
    reading = metrics.read(f'lab:prefix_cache_hits_total{{engine="0"}} {text}\n{other}\n', prefix="lab")
    assert reading.hits is None
    assert reading.why == "lab:prefix_cache_hits_total is not a finite number on this page"


def test_names_are_taken_in_order_of_preference_and_told() -> None:
    lines = {
        "lab:prefix_cache_hits_total": 1,
        "lab:prefix_cache_hits": 2,
        "lab:gpu_prefix_cache_hits_total": 3,
        "lab:gpu_prefix_cache_hits": 4,
    }
    while lines:
        text = "\n".join(f"{name} {value}" for name, value in reversed(lines.items()))
        name, value = next(iter(lines.items()))
        reading = metrics.read(text, prefix="lab")
        assert (reading.hits, reading.names["hits"]) == (value, name)
        del lines[name]


@pytest.mark.parametrize(
    "name",
    [
        "prefix_cache_hits_created",
        "external_prefix_cache_hits_total",
        "prefix_cache_hits_total_extra",
        "mm_prefix_cache_hits_total",
        "xprefix_cache_hits",
    ],
)
def test_twins_of_a_counter_are_never_taken_for_it(name: str) -> None:
    reading = metrics.read(f"lab:{name} 5\n# HELP lab:prefix_cache_hits_total 9\n", prefix="lab")
    assert reading.hits is None
    assert reading.why is not None and reading.why.startswith("the page has none of lab:prefix_cache_hits_total")


def test_a_vllm_page_is_recognised_and_read() -> None:
    reading = metrics.read(page("vllm_metrics.txt"), model="local-chat")
    assert (reading.engine, reading.hits, reading.queries) == ("vllm", 512, 1144)
    assert reading.page_tokens == 128
    assert reading.started_at_s == 1795982105.75


def test_a_llama_server_page_counts_computed_tokens_so_queries_are_the_sum() -> None:
    reading = metrics.read("llamacpp:prompt_tokens_total 389\nllamacpp:prompt_tokens_cached_total 759\n", model="any")
    assert (reading.engine, reading.hits, reading.queries) == ("llamacpp", 759, 1148)
    assert reading.names["queries"] == "llamacpp:prompt_tokens_cached_total + llamacpp:prompt_tokens_total"


def test_an_old_llama_server_without_a_hit_counter_tells_neither_number() -> None:
    reading = metrics.read("llamacpp:prompt_tokens_total 389\n", prefix="llamacpp")
    assert (reading.hits, reading.queries) == (None, None)


def test_an_sglang_page_is_summed_over_its_cache_sources() -> None:
    text = (
        'sglang:cached_tokens_total{model_name="m",cache_source="device"} 300.0\n'
        'sglang:cached_tokens_total{model_name="m",cache_source="host"} 20.0\n'
        'sglang:prompt_tokens_total{model_name="m"} 1000.0\n'
    )
    reading = metrics.read(text, model="m")
    assert (reading.engine, reading.hits, reading.queries) == ("sglang", 320, 1000)


def test_an_sglang_page_without_a_hit_yet_means_none_and_no_other_engines_page_does() -> None:
    reading = metrics.read('sglang:prompt_tokens_total{model_name="m1"} 1200\n', model="m1")
    assert (reading.engine, reading.hits, reading.queries, reading.why) == ("sglang", 0, 1200, None)
    assert metrics.read('vllm:prefix_cache_queries_total{model_name="m1"} 1200\n', prefix="vllm").hits is None
    assert metrics.read("sglang:num_requests_total 3\n", prefix="sglang").hits is None


def test_a_minivllm_page_is_recognised_among_engines() -> None:
    text = "minivllm:prefix_cache_hits_total 16.0\nminivllm:prefix_cache_queries_total 48.0\n"
    reading = metrics.read(text)
    assert (reading.engine, reading.hits, reading.queries) == ("minivllm", 16, 48)


def test_quoted_utf8_names_are_read() -> None:
    assert metrics.read('{"lab:prefix_cache_hits_total",model="m1"} 5\n', prefix="lab", model="m1").hits == 5


@pytest.mark.parametrize("text", ["", "\n\n", "# EOF", "<html>Not here</html>", '{"error": 1}', "python_info 1.0"])
def test_a_page_without_counters_is_null_with_a_reason_and_never_zero(text: str) -> None:
    reading = metrics.read(text)
    assert (reading.hits, reading.queries, reading.engine) == (None, None, None)
    assert reading.why == "the page holds no prefix cache counter that is known here"


def test_crlf_and_a_line_separator_inside_a_label_cut_no_line() -> None:
    text = 'lab:prefix_cache_hits_total{note="a\u2028b\x85c"} 3\r\nlab:prefix_cache_queries_total 4\r\n'
    reading = metrics.read(text, prefix="lab")
    assert (reading.hits, reading.queries, reading.rejected_lines) == (3, 4, ())
