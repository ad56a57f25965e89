"""The two-replica example: its pure parts, the whole of it behind a router of a few lines, and behind a real one."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from labbook.book import Labbook
from labbook.errors import UsageError
from labbook.signals import CounterDelta
from minivllm.server.errors import ApiError
from minivllm.server.fields import parse
from minivllm.server.openai import ChatCompletion
from scripts.route_replicas import tether
from scripts.route_replicas.drive import Outcome, Sizes, asked_documents, prompts
from scripts.route_replicas.records import as_table, balance, record_of, sentence
from scripts.route_replicas.router import ROUTERS, Router, RouterError, find_router, running_router

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "route-two-replicas.py"
CONDITIONS = {"run": "r", "label": "", "engine": "minivllm", "model": "tiny", "router": "r", "router_version": None}

# Stands for a router: says that its workers are well, and sends each request on to the next of them.
ROUND_ROBIN = """
    import argparse, http.server, itertools, json, urllib.request
    parser = argparse.ArgumentParser()
    for name in ("host", "prometheus-host", "policy"):
        parser.add_argument(f"--{name}")
    for name in ("port", "prometheus-port"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--worker-urls", nargs="+")
    options = parser.parse_args()
    workers = itertools.cycle(options.worker_urls)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_): pass
        def do_GET(self):
            self.answer("application/json", json.dumps({"healthy_workers": len(options.worker_urls)}).encode())
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = urllib.request.Request(next(workers) + self.path, body, {"Content-Type": "application/json"})
            with direct.open(request) as answer:
                self.answer(answer.headers["Content-Type"], answer.read())
        def answer(self, content_type, body):
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    http.server.ThreadingHTTPServer((options.host, options.port), Handler).serve_forever()
"""


def program(folder: Path, code: str, name: str = "vllm-router") -> Path:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(code)}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("route_two_replicas", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcome(*deltas: tuple[float, float], errors: tuple[str, ...] = ()) -> Outcome:
    return Outcome((), errors, tuple(CounterDelta(hits, queries) for hits, queries in deltas), page_tokens=16)


def test_every_document_is_asked_about_equally_often_and_in_no_pattern() -> None:
    order = asked_documents(Sizes(documents=6, questions=60))
    assert set(Counter(order).values()) == {10}
    by_turn = [order[turn::2] for turn in range(2)]  # what round robin over two replicas gives to each
    assert all(set(half) == set(range(6)) for half in by_turn)
    assert order == asked_documents(Sizes(documents=6, questions=60))
    assert order != asked_documents(Sizes(documents=6, questions=60, seed=1))


def test_prompts_differ_from_the_first_word_between_documents_and_only_at_the_end_within_one() -> None:
    sizes = Sizes(documents=3, questions=9, words=20)
    by_document: dict[int, list[tuple[str, str]]] = {}
    for document, (system, user) in zip(asked_documents(sizes), prompts(sizes), strict=True):
        by_document.setdefault(document, []).append((system["content"], user["content"]))
    assert len({systems.pop() for systems in ({s for s, _ in asked} for asked in by_document.values())}) == 3
    assert len({question for asked in by_document.values() for _, question in asked}) == 9
    assert len({asked[0][0].split()[0] for asked in by_document.values()}) == 3


def test_the_engine_takes_what_routers_write_out_at_its_default_and_nothing_more() -> None:
    """The fields that vllm-router 0.1.17 and sglang-router 0.3.2 add to every chat request, captured."""
    added = {"logprobs": False, "no_stop_trim": False, "ignore_eos": False, "continue_final_message": False}
    added |= {"skip_special_tokens": True, "separate_reasoning": True, "stream_reasoning": True}
    added |= {"return_hidden_states": False, "include_reasoning": True}
    body = {"model": "tiny", "messages": [{"role": "user", "content": "q"}]}
    assert parse(ChatCompletion, {**body, **added}) == parse(ChatCompletion, body)
    with pytest.raises(ApiError, match="return_hidden_states=True is not supported here"):
        parse(ChatCompletion, {**body, **added, "return_hidden_states": True})


@pytest.mark.parametrize(("loads", "expected"), [([3, 3], 1.0), ([4, 0], 2.0), ([6, 3, 3], 1.5), ([0, 0], None)])
def test_balance_is_the_busiest_over_the_mean(loads: list[float], expected: float | None) -> None:
    assert balance(loads) == expected


def test_a_record_has_the_counters_of_each_replica_and_of_all() -> None:
    record = record_of("round_robin", Sizes(), outcome((30, 100), (10, 100)), CONDITIONS)
    assert [replica["hit_ratio"] for replica in record["replicas"]] == [0.3, 0.1]
    assert (record["hits"], record["queries"], record["hit_ratio"]) == (40, 200, 0.2)
    assert (record["balance"], record["computed_balance"]) == (1.0, 1.125)
    assert record["pool_tokens"] == Sizes().pool_pages * 16


def test_a_replica_that_was_asked_nothing_has_no_hit_ratio() -> None:
    record = record_of("cache_aware", Sizes(), outcome((90, 100), (0, 0)), CONDITIONS)
    assert [replica["hit_ratio"] for replica in record["replicas"]] == [0.9, None]
    assert record["balance"] == 2.0
    assert "| - of 0 tokens |" in as_table([record])


def test_tokens_that_nobody_sent_and_requests_that_failed_are_warned_of() -> None:
    foreign = record_of("p", Sizes(), outcome((0, 5), (0, 0)), CONDITIONS)
    failed = record_of("p", Sizes(), outcome((0, 5), (0, 0), errors=("no",)), CONDITIONS)
    assert foreign["warnings"] == ["the replicas looked up 5 tokens, and 0 were sent: other traffic, or a retry"]
    assert failed["warnings"] == ["1 requests failed; their tokens may be counted by a replica"]
    assert (failed["failed"], failed["first_error"]) == (1, "no")


def test_the_sentence_says_what_the_numbers_say() -> None:
    even = record_of("round_robin", Sizes(), outcome((30, 100), (10, 100)), CONDITIONS)
    aware = record_of("cache_aware", Sizes(), outcome((90, 100), (70, 100)), CONDITIONS)
    said = "Prompt tokens found in a replica's cache: round_robin 20%, cache_aware 80%. cache_aware computed 0.25 times"
    assert sentence([aware, even]).startswith(said)
    assert sentence([record_of("p", Sizes(), outcome((0, 0)), CONDITIONS)]) == "No replica looked up a token."


@pytest.mark.parametrize("name", ROUTERS)
def test_a_router_listens_on_loopback_alone(name: str) -> None:
    command = Router(name, Path(name), None).command("cache_aware", ["http://127.0.0.1:1"], port=2, metrics_port=3)
    text = " ".join(command)
    assert "--host 127.0.0.1 --port 2 --prometheus-host 127.0.0.1 --prometheus-port 3" in text
    assert text.endswith("--policy cache_aware --worker-urls http://127.0.0.1:1")
    assert ("launch" in command) == (name == "sglang-router")


def test_a_router_is_found_by_path_with_the_version_of_its_package(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "vllm_router-0.1.17.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-router\nVersion: 0.1.17\n", encoding="utf-8")
    path = program(tmp_path / "bin", "")
    assert find_router(str(path)) == Router("vllm-router", path, "0.1.17")


def test_a_missing_router_is_told_with_the_command_that_installs_it(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("scripts.route_replicas.router.shutil.which", lambda name: None)
    monkeypatch.setattr("scripts.route_replicas.router.sys.executable", str(tmp_path / "python"))
    assert script.main(["--labbook", str(tmp_path / "labbook.md")]) == 1
    said = capsys.readouterr().err
    assert "vllm-router or sglang-router is not installed" in said
    assert "pip install -c constraints.txt -e '.[router]'" in said
    assert not (tmp_path / "labbook.md").exists()


def test_another_program_is_not_taken_for_a_router(tmp_path: Path) -> None:
    with pytest.raises(RouterError, match="none of the routers known here"):
        find_router(str(program(tmp_path, "", name="nginx")))


def test_a_router_that_does_not_start_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    path = program(tmp_path, "print('\\x1b[31mno such policy\\x1b[0m'); raise SystemExit(3)")
    running = running_router(Router("vllm-router", path, None), "p", ["http://127.0.0.1:9"])
    with (
        pytest.raises(RouterError, match=r"status 3 before it was ready; vllm-router said:\n    no such policy"),
        running,
    ):
        pass


def test_the_tethered_program_ends_with_its_starter(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    code = f"import time, os; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    process = subprocess.Popen([sys.executable, tether.__file__, sys.executable, "-c", code], stdin=subprocess.PIPE)
    while not (mark.exists() and mark.read_text(encoding="utf-8")):
        time.sleep(0.01)
    process.communicate()  # closes its standard input, as the end of the starter would
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text(encoding="utf-8")), 0)


@pytest.mark.parametrize("size", ["documents", "questions", "clients", "pool_pages", "replicas"])
def test_a_size_of_nothing_is_wrong_usage(script: ModuleType, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    flag = f"--{size.replace('_', '-')}"
    assert script.main([flag, "0"]) == 2
    assert f"{flag} is 0: give 1 or more" in capsys.readouterr().err
    with pytest.raises(UsageError):
        Sizes(**{size: 0})


def test_both_replicas_are_measured_and_recorded_behind_a_router(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four questions about one document, in turn: each replica computes it once and finds it once."""
    arguments = ["--router", str(program(tmp_path, ROUND_ROBIN)), "--policies", "round_robin", "--clients", "1"]
    arguments += ["--documents", "1", "--questions", "4", "--words", "30", "--new-tokens", "1"]
    assert script.main([*arguments, "--labbook", str(tmp_path / "labbook.md"), "--json"]) == 0
    (printed,) = json.loads(capsys.readouterr().out)
    (record,) = Labbook(tmp_path / "labbook.md").records(strict=True)
    assert record == printed
    assert record["warnings"] == []
    assert record["requests"] == 4
    first, second = record["replicas"]
    assert first["hits"] == second["hits"] > 0
    assert record["cached_tokens"] == record["hits"] == first["hits"] + second["hits"]
    assert record["sent_tokens"] == record["queries"]


def installed_router() -> Router | None:
    try:
        return find_router(os.environ.get("LAB_ROUTER"))
    except RouterError:
        return None


@pytest.mark.skipif(installed_router() is None, reason="no router is installed (the extra `router`, or LAB_ROUTER)")
def test_cache_aware_routing_finds_more_than_round_robin(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    router = installed_router()
    assert router is not None
    arguments = ["--router", str(router.program), "--labbook", str(tmp_path / "labbook.md")]
    assert script.main([*arguments, "--documents", "6", "--questions", "36", "--pool-pages", "160"]) == 0
    even, aware = Labbook(tmp_path / "labbook.md").records(strict=True)
    assert (even["policy"], aware["policy"]) == ("round_robin", "cache_aware")
    assert even["balance"] < 1.1
    assert aware["hit_ratio"] > even["hit_ratio"]
    assert aware["warnings"] == even["warnings"] == []
    assert "| cache_aware |" in capsys.readouterr().out
