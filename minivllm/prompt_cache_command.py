"""`minivllm export-prompt-cache` and `import-prompt-cache`: conversations to and from mlx-lm."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minivllm.config import ConfigError, EngineConfig, SamplingParams
from minivllm.models.errors import ModelError
from minivllm.models.registry import DEFAULT_MODEL

if TYPE_CHECKING:
    from minivllm.llm import LLM
    from minivllm.models.loading import LoadedModel

SPARE_PAGES = 2


def add_parsers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    export = commands.add_parser("export-prompt-cache", help="write a prompt-cache file for mlx_lm.generate")
    export.set_defaults(run=_export)
    export.add_argument("file", type=Path, metavar="FILE", help="what to write; ends in .safetensors")
    source = export.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", type=Path, metavar="FILE", help="UTF-8 text to compute; - reads standard input")
    source.add_argument("--slot-file", type=Path, metavar="FILE", help="a saved slot, in the place of a text")
    export.add_argument("--cache-salt", metavar="TEXT", help="the salt of the saved slot, if it has one")
    export.add_argument("--mlx-model", metavar="NAME", help="what mlx-lm calls the model (default: its folder here)")
    take_in = commands.add_parser("import-prompt-cache", help="turn a file of mlx_lm.cache_prompt into a slot file")
    take_in.set_defaults(run=_import)
    take_in.add_argument("file", type=Path, metavar="FILE", help="what mlx-lm wrote")
    text = take_in.add_mutually_exclusive_group(required=True)
    text.add_argument("--prompt", metavar="TEXT", help="the text it was made from; it is verified")
    text.add_argument("--prompt-file", type=Path, metavar="FILE", help="the same, from a UTF-8 file")
    take_in.add_argument("--output", type=Path, required=True, metavar="FILE", help="the slot file to write")
    take_in.add_argument(
        "--samples", type=int, default=16, metavar="NUMBER", help="positions to recompute (%(default)s)"
    )
    for command in (export, take_in):
        add = command.add_argument
        add("--model", default=DEFAULT_MODEL, metavar="NAME", help="as of serve (default: %(default)s)")
        add("--ignore-chat-template", action="store_true", help="take the text as it is, not as an open user turn")
        add(
            "--page-size",
            type=int,
            default=16,
            metavar="NUMBER",
            help="of the engine that will restore it (%(default)s)",
        )
        add("--slot-key-env", metavar="NAME", help="environment variable that holds the key of the slot file")
        add("--json", action="store_true", help="print one JSON object")
    export.add_argument("--kv-bits", type=int, choices=(8, 4), help="write a quantized cache")
    export.add_argument("--kv-group-size", type=int, choices=(32, 64, 128), default=64, help="(default: %(default)s)")


def _export(arguments: argparse.Namespace) -> int:
    from minivllm.cache.slot_errors import SlotError
    from minivllm.models.loading import load_model
    from minivllm.prompt_cache import export_prompt_cache, open_user_turn

    loaded = load_model(arguments.model)
    try:
        if arguments.slot_file is not None:
            llm = _restored(loaded, arguments)
        else:
            token_ids = open_user_turn(loaded.tokenizer, _text(arguments.prompt), not arguments.ignore_chat_template)
            settings = {"kv_bits": arguments.kv_bits, "kv_group_size": arguments.kv_group_size}
            llm = _engine_for(loaded, len(token_ids), arguments, settings)
            llm.generate([token_ids], SamplingParams(max_tokens=1, temperature=0.0), id_slot=0)
        model = arguments.mlx_model or str(loaded.path)
        num_tokens = export_prompt_cache(llm.slots[0], arguments.file, model, llm.engine.layout.kv_format)
    except SlotError as error:
        raise ModelError(str(error)) from None
    answer = {"file": str(arguments.file), "num_tokens": num_tokens, "model": model}
    print(json.dumps(answer) if arguments.json else f"{num_tokens} tokens written to {arguments.file}")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from minivllm.cache.slot_errors import SlotError
    from minivllm.models.loading import load_model
    from minivllm.prompt_cache import import_prompt_cache, open_user_turn, read_prompt_cache

    loaded = load_model(arguments.model)
    text = arguments.prompt if arguments.prompt is not None else _text(arguments.prompt_file)
    try:
        cache = read_prompt_cache(arguments.file)
        token_ids = open_user_turn(loaded.tokenizer, text, not arguments.ignore_chat_template)
        settings: dict[str, Any] = {"kv_bits": cache.bits}
        if cache.group_size is not None:
            settings["kv_group_size"] = cache.group_size
        llm = _engine_for(loaded, cache.num_tokens, arguments, settings)
        import_prompt_cache(llm.slots[0], cache, token_ids, arguments.samples)
        saved = llm.slots[0].save(arguments.output.absolute())
    except SlotError as error:
        raise ModelError(str(error)) from None
    answer = {"file": str(saved.path), "num_tokens": saved.num_tokens, "num_bytes": saved.num_bytes}
    told = f"{saved.num_tokens} tokens verified and written to {arguments.output}"
    print(json.dumps(answer) if arguments.json else told)
    return 0


def _engine_for(loaded: LoadedModel, num_tokens: int, arguments: argparse.Namespace, settings: dict[str, Any]) -> LLM:
    """An engine with room for one sequence."""
    from minivllm.llm import LLM
    from minivllm.slots import SlotFileOptions

    num_pages = -(-num_tokens // settings.get("page_size", arguments.page_size)) + SPARE_PAGES
    config = EngineConfig(**{"page_size": arguments.page_size, "num_pages": num_pages, **settings})
    return LLM(loaded, config, slot_options=SlotFileOptions(key_env=arguments.slot_key_env))


def _restored(loaded: LoadedModel, arguments: argparse.Namespace) -> LLM:
    """An engine with the settings of a slot file, which it has restored into slot 0."""
    from minivllm.cache.slot_encryption import passphrase_from
    from minivllm.cache.slot_folder import read

    content = read(arguments.slot_file, passphrase_from(arguments.slot_key_env))[0]
    names = ("page_size", "kv_dtype", "kv_bits", "kv_group_size")
    settings = {name: content.identity[name] for name in names if content.identity.get(name) is not None}
    llm = _engine_for(loaded, len(content.token_ids), arguments, settings)
    llm.slots[0].restore(arguments.slot_file.absolute(), arguments.cache_salt)
    return llm


def _text(path: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"the text {path} is not UTF-8: byte {error.start} cannot be read") from None
    except OSError as error:
        raise ConfigError(f"cannot read the text {path}: {error.strerror}") from None
