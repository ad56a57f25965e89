"""Slot files that must not be taken in, and what an engine says when it is asked to."""

from __future__ import annotations

import re
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minivllm import LLM
from minivllm.backend import mx
from minivllm.cache.slot_errors import SlotError
from minivllm.cache.slot_folder import path_in
from minivllm.models.registry import resolve
from minivllm.models.tokenizer import Tokenizer, load_tokenizer
from minivllm.models.weights import read_json

_WIDTH = 96
_DIGEST = re.compile(r"[0-9a-f]{16,}")


@dataclass(frozen=True)
class Attempt:
    """`said` is the engine's reason, digests left out; None when the file was taken in."""

    what: str
    said: str | None
    is_unharmed: bool

    @property
    def is_refused(self) -> bool:
        return self.said is not None

    def as_text(self) -> str:
        if self.said is None:
            return f"{self.what}: taken in"
        state = "nothing has changed" if self.is_unharmed else "SOMETHING HAS CHANGED"
        said = textwrap.fill(self.said, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        return f"{self.what}: refused, {state}\n{said}"


def tried(what: str, llm: LLM, file: Path | str, folder: Path, cache_salt: str | None = None) -> Attempt:
    """Restore into slot 0. A name, rather than a path, is looked up in `folder` as the server does."""
    before = _state(llm)
    try:
        path = path_in(folder, file) if isinstance(file, str) else file
        llm.slots[0].restore(path, cache_salt)
        said = None
    except SlotError as error:
        said = without_digests(str(error))
    return Attempt(what, said, _state(llm) == before)


def without_digests(text: str) -> str:
    """Long hexadecimal numbers say nothing to a reader."""
    return _DIGEST.sub("<digest>", text)


def flipped(path: Path, at_byte: int) -> Path:
    """A copy beside it, in which one bit of one byte is another."""
    data = bytearray(path.read_bytes())
    data[at_byte] ^= 1
    return _written(path.with_name("flipped.bin"), bytes(data))


def cut(path: Path, num_bytes: int) -> Path:
    """A copy beside it that ends after so many bytes."""
    return _written(path.with_name("cut.bin"), path.read_bytes()[:num_bytes])


def link_out_of(folder: Path, path: Path) -> str:
    """The name of a link in `folder` that leads to a copy of the file outside."""
    outside = folder.parent / "outside.bin"
    shutil.copyfile(path, outside)
    (folder / "link.bin").symlink_to(outside)
    return "link.bin"


def model_with_one_other_weight(folder: Path) -> str:
    """`tiny` again, in a new folder, with one number of one layer changed: as after one step of fine-tuning."""
    copied = folder / "nearly-tiny"
    shutil.copytree(resolve("tiny"), copied)
    weights: Any = mx.load(str(copied / "model.safetensors"))
    changed = weights["model.layers.0.mlp.up_proj.weight"]
    changed[0, 0] = changed[0, 0] + 0.001
    mx.eval(weights)
    mx.save_safetensors(str(copied / "model.safetensors"), weights, {"format": "mlx"})
    return str(copied)


def tokenizer_of(model: str) -> Tokenizer:
    """A model's tokenizer alone: all that a reader of its token ids needs."""
    folder = resolve(model)
    return load_tokenizer(folder, read_json(folder / "config.json"))


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _state(llm: LLM) -> tuple[object, ...]:
    """Everything that a refused restore must leave alone."""
    pages = {name: count for name, count in llm.stats().items() if name.startswith("pages_")}
    return pages, [(slot.token_ids, slot.num_held_tokens) for slot in llm.slots]
