"""`labbook explain`: two bodies, a file of many, or --lint for one."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from labbook.errors import UsageError
from labbook.keys import api_key
from labbook.places import file_argument
from labbook.progress import each

if TYPE_CHECKING:
    from labbook.explain.body import Body

_DESCRIPTION = (
    "Where two prompts part, why, what it costs, and what to do. FILE holds one request body as JSON, or one a line: "
    "then each body is explained against the best match before it. Without --base-url and --tokenizer words are "
    "compared: that shows the place and the cause, but counts words in the place of tokens, and sees no chat template."
)


def add_parser(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `explain` to the commands of `labbook`."""
    parser = commands.add_parser(
        "explain", parents=[shared], help="where two prompts diverge, and why", description=_DESCRIPTION
    )
    add = parser.add_argument
    add("files", nargs="+", type=file_argument, metavar="FILE", help="request bodies: A.json B.json, or one JSONL file")
    add("--lint", action="store_true", help="warn about each body by itself, before anything is sent")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--base-url", metavar="URL", help="let this server tokenize (vLLM, llama-server, minivllm)")
    source.add_argument("--tokenizer", metavar="FOLDER", help="a model's folder with tokenizer.json, or a cached name")
    add("--model", help="name of the model for --base-url, where the bodies name another")
    add("--api-key-env", metavar="NAME", help="environment variable that holds the API key")
    add("--page-tokens", type=int, default=16, metavar="N", help="tokens of a page, or block, of the server (16)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what was asked for. Raises UsageError for unusable files, LabbookError where nothing can be rendered."""
    from labbook.explain.body import read_bodies

    if options.page_tokens < 1:
        raise UsageError(f"--page-tokens {options.page_tokens}: a page holds at least 1 token")
    bodies = [body for path in options.files for body in read_bodies(path)]
    with _renderer(options) as renderer:
        if options.lint:
            return _lint(bodies, renderer, options)
        if len(bodies) < 2:
            raise UsageError("one body has nothing to part from: give two files, or a JSONL file of more (or --lint)")
        if len(bodies) == 2 and len(options.files) == 2:
            return _explain(bodies, renderer, options)
        return _explain_all(bodies, renderer, options)


def _explain(bodies: Sequence[Body], renderer: Any, options: argparse.Namespace) -> int:
    from labbook.explain.pair import explain
    from labbook.explain.report import explanation_lines

    explanation = explain(bodies[0], bodies[1], renderer, options.page_tokens)
    _print([json.dumps(explanation.as_json())] if options.json else explanation_lines(explanation))
    return 0


def _explain_all(bodies: Sequence[Body], renderer: Any, options: argparse.Namespace) -> int:
    from labbook.explain.report import series_lines
    from labbook.explain.series import Series, summarize

    series = Series(renderer, options.page_tokens)
    entries = [series.add(body) for body in each(bodies, "body")]
    summary = summarize(entries)
    if not options.json:
        _print(series_lines(entries, summary))
        return 0
    told = [
        {
            "number": entry.number,
            "against": entry.against,
            "is_new": entry.is_new,
            "explanation": entry.explanation.as_json() if entry.explanation else None,
        }
        for entry in entries
    ]
    _print([json.dumps({"bodies": told, "summary": [asdict(row) for row in summary]})])
    return 0


def _lint(bodies: Sequence[Body], renderer: Any, options: argparse.Namespace) -> int:
    from labbook.explain.lint import lint
    from labbook.explain.report import lint_lines

    found = [lint(body, renderer) for body in each(bodies, "body")]
    if options.json:
        told = [[{**asdict(one), "fix": one.fix, "sentence": one.sentence} for one in findings] for findings in found]
        _print([json.dumps({"bodies": told})])
        return 0
    for number, findings in enumerate(found, start=1):
        if len(found) > 1:
            print(f"body {number}")
        _print(lint_lines(findings))
    return 0


@contextlib.contextmanager
def _renderer(options: argparse.Namespace) -> Iterator[Any]:
    if options.tokenizer is not None:
        from labbook.explain.tokenizer import load

        yield load(options.tokenizer)
        return
    if options.base_url is None:
        yield None
        return
    from labbook.explain.server import ServerRenderer

    server = ServerRenderer(options.base_url, model=options.model, api_key=api_key(options.api_key_env))
    with contextlib.closing(server):
        yield server


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
