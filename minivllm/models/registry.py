"""From the name of a model to its folder."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minivllm.home import folder_made_once, home
from minivllm.models.errors import ModelError

DEFAULT_MODEL = "smollm2-135m"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class Entry:
    """A model that has a name here; `folder()` makes or fetches it when that is needed."""

    name: str
    about: str
    folder: Callable[[], Path]


def _smollm2() -> Path:
    from minivllm.models.smollm2 import smollm2_folder

    return smollm2_folder()


def _tiny() -> Path:
    from minivllm.models.tiny import tiny_folder

    return tiny_folder()


def _hub(repository: str) -> Callable[[], Path]:
    def folder() -> Path:
        from minivllm.models.hub import hub_folder

        return hub_folder(repository)

    return folder


REGISTRY = {
    entry.name: entry
    for entry in (
        Entry("smollm2-135m", "SmolLM2-135M-Instruct, 4-bit, from the package index", _smollm2),
        Entry("tiny", "2 layers with random weights, made here from a seed", _tiny),
        Entry(
            "qwen2.5-0.5b",
            "Qwen2.5-0.5B-Instruct, 4-bit, from the Hub",
            _hub("mlx-community/Qwen2.5-0.5B-Instruct-4bit"),
        ),
        Entry("qwen3-0.6b", "Qwen3-0.6B, 4-bit, from the Hub", _hub("mlx-community/Qwen3-0.6B-4bit")),
    )
}


def resolve(name: str) -> Path:
    """The folder of a registry name, a folder, a `.gguf` file or a Hub id; ModelError for anything else."""
    if name in REGISTRY:
        return REGISTRY[name].folder()
    path = Path(name).expanduser()
    if path.is_dir():
        return path.absolute()
    if path.suffix.lower() == ".gguf":
        return _converted(path)
    if _HUB_ID.fullmatch(name):
        return _hub(name)()
    if "/" in name or name.startswith("."):
        raise ModelError(f"model {name!r}: there is no folder {path.absolute()}, and it is no Hub id (owner/name)")
    near = difflib.get_close_matches(name, REGISTRY, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    raise ModelError(
        f"model {name!r} is not known{meant}: use {', '.join(REGISTRY)}, a folder in MLX or Hugging Face layout, "
        "a .gguf file, or a Hub id (owner/name)"
    )


def _converted(gguf: Path) -> Path:
    """The folder that a `.gguf` file was converted into, by the file's content."""
    from minivllm.models.gguf import convert
    from minivllm.models.weights import file_digest

    if not gguf.is_file():
        raise ModelError(f"there is no file {gguf.absolute()}")
    final = home() / "models" / f"{gguf.stem}-{file_digest(gguf)[:16]}"
    return folder_made_once(final, lambda folder: convert(gguf, folder))
