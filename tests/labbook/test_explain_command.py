"""`labbook explain` as a person runs it, and the servers that tokenize for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from labbook.cli import main
from labbook.errors import ServerError
from labbook.explain import Body, explain, read_bodies
from labbook.explain.server import ServerRenderer

TEXT = "The keeper closes the gallery, fills the second oil tank and writes the height of the water into the log. "


def chat(system: str, user: str = "Where do dogs stay?", **more: Any) -> dict[str, Any]:
    return {
        "model": "tiny",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        **more,
    }


MORNING = chat(f"It is 10:32:07. {(TEXT * 3).strip()}")
LATER = chat(f"It is 10:32:41. {(TEXT * 3).strip()}")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def to_file(name: str, *bodies: Any) -> str:
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(body) for body in bodies), encoding="utf-8")
        return str(path)

    return to_file


def test_two_files_are_explained_in_words(write, capsys) -> None:
    assert main(["explain", write("a.json", MORNING), write("b.json", LATER)]) == 0
    out, err = capsys.readouterr()
    labels = [line[:14].strip() for line in out.splitlines()]
    assert labels == ["prompts", "shared", "they part at", "first", "second", "cause", "lost", "to win", "do", "note"]
    assert "clock (certain)" in out and "messages[0].content" in out and "word 10" in out
    assert err == ""


def test_json_is_one_object_with_everything(write, capsys) -> None:
    assert main(["explain", write("a.json", MORNING), write("b.json", LATER), "--page-tokens", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == explain(MORNING, LATER, page_tokens=4).as_json()
    assert (told["cause"], told["position"], told["shared_pages"], told["unit"]) == ("clock", 10, 2, "word")


def test_a_file_of_bodies_is_explained_one_by_one_and_summed_up(write, capsys) -> None:
    other = chat(f"It is 10:32:41. {(TEXT * 3).strip()}", "Who signs?")
    path = write("all.jsonl", MORNING, LATER, {"body": other}, MORNING)
    assert main(["explain", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["1", "the", "first"]
    assert [line.split(":")[0].split()[-2:] for line in lines[1:4]] == [
        ["against", "1"],
        ["against", "2"],
        ["against", "1"],
    ]
    assert lines[5].split() == ["cause", "bodies", "words", "lost"]
    assert lines[6].split()[:2] == ["clock", "1"] and lines[7].split() == ["none", "2", "0"]
    assert main(["explain", path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["against"] for one in told["bodies"]] == [None, 1, 2, 1]
    assert {row["cause"]: row["count"] for row in told["summary"]} == {"clock": 1, "none": 2}


def test_lint_warns_and_keeps_quiet(write, capsys) -> None:
    assert main(["explain", "--lint", write("a.json", MORNING)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("warning: a clock in messages[0].content, word 6") and "Move the time" in out
    assert main(["explain", "--lint", write("b.json", chat(TEXT.strip()))]) == 0
    assert capsys.readouterr().out.startswith("nothing in this body")
    assert main(["explain", "--lint", "--json", write("c.jsonl", MORNING, chat(TEXT.strip()))]) == 0
    first, second = json.loads(capsys.readouterr().out)["bodies"]
    assert [one["cause"] for one in first] == ["clock"] and second == []


def test_what_a_stranger_wrote_moves_no_cursor(write, capsys) -> None:
    hostile = [chat(f"\x1b[2J{name}\r{(TEXT * 3).strip()}") for name in ("one", "two")]
    assert main(["explain", write("a.json", hostile[0]), write("b.json", hostile[1])]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"prompt": ', "line 1 is no JSON"),
        (b'{"prompt": "a"}\n{"prompt": 7}\n', "line 2: a request body needs"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"", "one body has nothing to part from"),
        (b'{"prompt": "a"}', "one body has nothing to part from"),
        (b"[" * 100_000, "nests too deeply"),
    ],
)
def test_a_file_that_cannot_be_used_is_wrong_usage(tmp_path, capsys, content, said) -> None:
    path = tmp_path / "bodies.jsonl"
    path.write_bytes(content)
    assert main(["explain", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and "Traceback" not in err


def test_wrong_options_name_what_would_be_right(write, capsys, monkeypatch) -> None:
    files = [write("a.json", MORNING), write("b.json", LATER)]
    for more, said in (
        (["--page-tokens", "0"], "at least 1 token"),
        (["--tokenizer", "/nowhere"], "no folder /nowhere"),
        (["--base-url", "localhost"], "no scheme"),
        (["--base-url", "http://127.0.0.1:9", "--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
    ):
        assert main(["explain", *files, *more]) == 2
        assert said in capsys.readouterr().err
    assert main(["explain", *files, "--base-url", "http://127.0.0.1:9"]) == 1
    assert "cannot reach" in capsys.readouterr().err


def test_a_byte_order_mark_before_the_json_is_read_over(tmp_path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(MORNING).encode())
    assert read_bodies(path) == [Body(MORNING)]


class LlamaServer(BaseHTTPRequestHandler):
    """llama-server's three addresses over characters: a token is a code point, the template is ChatML."""

    addresses = ("/apply-template", "/tokenize", "/detokenize")

    def log_message(self, *args: object) -> None:
        return

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path not in self.addresses:
            return self._answer(404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}})
        if self.path == "/apply-template":
            turns = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in asked["messages"])
            return self._answer(200, {"prompt": turns + "<|im_start|>assistant\n"})
        if self.path == "/tokenize":  # without `content` it answers no tokens, and no error
            return self._answer(200, {"tokens": list(map(ord, asked.get("content", "")))})
        return self._answer(200, {"content": "".join(map(chr, asked["tokens"]))})

    def _answer(self, status: int, told: dict[str, Any]) -> None:
        data = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def llama() -> Iterator[Callable[..., str]]:
    running: list[ThreadingHTTPServer] = []

    def start(*addresses: str) -> str:
        handler = type("Handler", (LlamaServer,), {"addresses": addresses or LlamaServer.addresses})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/v1"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def test_llama_server_templates_and_tokenizes(llama) -> None:
    explanation = explain(MORNING, LATER, ServerRenderer(llama()))
    head = "<|im_start|>system\nIt is 10:32:"
    assert (explanation.position, explanation.cause) == (len(head), "clock")
    assert (explanation.a.token, explanation.b.token) == (ord("0"), ord("4"))
    prompts = [{"prompt": f"request {number}: {TEXT}"} for number in (17, 18)]
    assert explain(*prompts, ServerRenderer(llama())).position == len("request 1")


def test_a_server_that_cannot_tokenize_is_told_with_what_can(llama, write, capsys) -> None:
    with pytest.raises(ServerError, match=r"cannot tokenize this body: .*File Not Found.*--tokenizer"):
        explain(MORNING, LATER, ServerRenderer(llama("/none")))
    with pytest.raises(ServerError, match=r"/detokenize|File Not Found"):
        explain(MORNING, LATER, ServerRenderer(llama("/apply-template", "/tokenize")))
    assert main(["explain", write("a", MORNING), write("b", LATER), "--base-url", llama("/none")]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_real_mini_engine_tokenizes_as_its_tokenizer_does(write, capsys) -> None:
    pytest.importorskip("mlx.core")
    from tests.labbook.explain_pairs import pairs
    from tests.server.live import live_server

    wanted = ("clock", "key_order", "reranked_passages", "retokenized_seam")
    chosen = [pair for pair in pairs("causes") if pair["cause"] in wanted]
    with live_server() as server:
        tokenizer = server.engine.call(lambda engine: engine.tokenizer).result(30)
        for pair in chosen:
            bodies = [{**pair[side], "model": "tiny"} for side in "ab"]
            for body in bodies:
                if isinstance(body.get("prompt"), dict):
                    pieces = body["prompt"]["pieces"]
                    body["prompt"] = [t for at, piece in enumerate(pieces) for t in tokenizer.encode(piece, at == 0)]
            files = [write(name, body) for name, body in zip("ab", bodies, strict=True)]
            assert main(["explain", *files, "--base-url", server.url, "--json"]) == 0
            told = json.loads(capsys.readouterr().out)
            assert (told["cause"], told["field"]) == (pair["cause"], pair["field"])
            assert (told["position"], told["unit"]) == (pair["position"]["tiny"], "token")
            assert told == explain(bodies[0], bodies[1], tokenizer).as_json()


def test_the_command_loads_nothing_of_explain_before_it_runs() -> None:
    import subprocess
    import sys

    code = "import sys, labbook.cli; print([name for name in sys.modules if name.startswith('labbook.explain.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
