"""`minivllm`: serve, generate, count memory, measure what quantized pages cost, replay traffic through designs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from labbook.errors import LabbookError
from minivllm import budget_command, evaluate_command, prompt_cache_command, slots_command
from minivllm.budget import parse_bytes
from minivllm.config import ConfigError, EngineConfig, SamplingParams
from minivllm.models.errors import ModelError
from minivllm.models.registry import DEFAULT_MODEL, REGISTRY
from minivllm.policies.command import add_replay
from minivllm.request import RequestError
from minivllm.server.flags import add_engine_flags, engine_config

if TYPE_CHECKING:
    from minivllm.engine import Engine
    from minivllm.slots import SlotFileOptions

FAILED, WRONG_USAGE = 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 when it failed, 2 for wrong usage."""
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        return status
    except ConfigError as error:
        return _fail(str(error), WRONG_USAGE)
    except (LabbookError, ModelError, RequestError) as error:
        return _fail(str(error), FAILED)
    except ModuleNotFoundError as error:
        return _fail(f"{error}: install the extra 'engine' (make setup does)", FAILED)


def run() -> NoReturn:
    """The console script. Leaves without the interpreter's own clean-up.

    MLX has thread-local destructors that ask for the GIL after Python's `join()` has returned; an interpreter that is
    being finalized answers by ending the thread, which aborts the process (seen on CPython 3.11 after Ctrl-C).
    """
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="minivllm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_generate(commands)
    budget_command.add_parser(commands)
    slots_command.add_parser(commands)
    prompt_cache_command.add_parsers(commands)
    evaluate_command.add_parser(commands, keep=_append_records)
    add_replay(commands, lambda: import_module("labbook.book"), lambda: import_module("labbook.figures"))
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="serve a model with the OpenAI API")
    serve.set_defaults(run=_serve)
    _add_model(serve)
    serve.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)"
    )
    serve.add_argument(
        "--port",
        type=_port,
        default=8000,
        help="port to listen on; 0 picks a free one (default: %(default)s)",
    )
    serve.add_argument("--served-model-name", metavar="NAME", help="what clients call the model (default: as --model)")
    serve.add_argument(
        "--api-key-env", metavar="NAME", help="environment variable that holds the key clients must send"
    )
    serve.add_argument(
        "--expose-slot-text", action="store_true", help="let GET /slots show the text that each slot remembers"
    )
    serve.add_argument(
        "--slot-save-limit",
        metavar="BYTES",
        help="what slot files may take, as 10GiB: saving deletes the oldest others",
    )
    serve.add_argument(
        "--slot-key-env", metavar="NAME", help="environment variable with the key that encrypts slot files"
    )
    add_engine_flags(serve)


def _add_generate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    generate = commands.add_parser("generate", help="print the text that follows a prompt")
    generate.set_defaults(run=_generate)
    _add_model(generate)
    generate.add_argument("prompt", metavar="PROMPT", help="text to continue, taken as it is: no chat template")
    generate.add_argument(
        "--max-tokens", type=int, default=64, metavar="NUMBER", help="longest answer (default: %(default)s)"
    )
    generate.add_argument(
        "--temperature", type=float, default=0.0, metavar="NUMBER", help="0 is greedy (default: %(default)s)"
    )
    generate.add_argument("--seed", type=int, metavar="NUMBER", help="makes sampling repeatable")
    add_engine_flags(generate)


def _add_model(parser: argparse.ArgumentParser) -> None:
    known = f"{', '.join(REGISTRY)}, a folder in MLX or Hugging Face layout, a .gguf file, or a Hub id"
    parser.add_argument("--model", default=DEFAULT_MODEL, metavar="NAME", help=f"{known} (default: %(default)s)")


def _serve(arguments: argparse.Namespace) -> int:
    from minivllm.server.serving import Address, ServeError, serve

    config = engine_config(arguments)
    slot_options = _slot_options(arguments)
    try:
        return serve(
            lambda: _build_engine(arguments.model, config, slot_options),
            arguments.served_model_name or arguments.model,
            Address(arguments.host, arguments.port),
            _api_key(arguments.api_key_env),
            expose_slot_text=arguments.expose_slot_text,
        )
    except ServeError as error:
        return _fail(str(error), FAILED)


def _generate(arguments: argparse.Namespace) -> int:
    from minivllm.llm import LLM

    params = SamplingParams(max_tokens=arguments.max_tokens, temperature=arguments.temperature, seed=arguments.seed)
    llm = LLM(arguments.model, engine_config(arguments))
    try:
        print(llm.generate([arguments.prompt], params)[0].text)
    finally:
        llm.close()
    return 0


def _slot_options(arguments: argparse.Namespace) -> SlotFileOptions:
    from minivllm.slots import SlotFileOptions

    limit = arguments.slot_save_limit
    return SlotFileOptions(None if limit is None else parse_bytes(limit), arguments.slot_key_env)


def _build_engine(model: str, config: EngineConfig, slot_options: SlotFileOptions) -> Engine:
    """Called in the engine thread, which so owns every array from the first."""
    from minivllm.engine import Engine
    from minivllm.models.loading import load_model

    return Engine(load_model(model), config, slot_options=slot_options)


def _append_records(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Commands measure, the labbook remembers. A record says when it was written."""
    from labbook.book import Labbook
    from labbook.record import environment_stamp, now_iso

    for record in records:
        Labbook(path).append({**record, "environment": environment_stamp(), "recorded_at": now_iso()})


def _api_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        message = f"--api-key-env names {variable}, which is unset or empty"
        raise ConfigError(f"{message}: export it with the key clients must send")
    return key


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 0 to 65535")
    return int(text)


def _fail(message: str, status: int) -> int:
    print(f"minivllm: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    run()
