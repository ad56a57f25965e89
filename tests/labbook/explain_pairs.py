"""The pairs of data/explain, and the real tokenizers that they are rendered with."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from labbook.explain.tokenizer import TokenizerRenderer, load
from minivllm.home import home
from minivllm.models.tiny import tiny_folder
from minivllm.models.tokenizer import Tokenizer, load_tokenizer

DATA = Path(__file__).parent / "data" / "explain"
TOKENIZERS = ("tiny", "smollm2-135m")

# SmolLM2's own template takes no tools.
CHATML = (
    "{% if tools %}<|im_start|>system\n# Tools\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n"
    "{% endif %}{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] | trim }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def pairs(group: str) -> list[dict[str, Any]]:
    """`causes`, `clean` or `unknown`."""
    listed: list[dict[str, Any]] = json.loads((DATA / f"{group}.json").read_text(encoding="utf-8"))
    return listed


def folder_of(name: str) -> Path | None:
    """The folder of a model with its tokenizer; None where it was never fetched."""
    folder = tiny_folder() if name == "tiny" else home() / "models" / name
    return folder if (folder / "tokenizer.json").is_file() else None


class Tokenizers:
    """Folders with a chat template of the test's, read by labbook, and by the mini engine as a second opinion."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._read = cache(self._read_both)

    def labbook(self, name: str, template: str | None = None) -> TokenizerRenderer:
        return self._read(name, template)[0]

    def engine(self, name: str, template: str | None = None) -> Tokenizer:
        return self._read(name, template)[1]

    def _read_both(self, name: str, template: str | None) -> tuple[TokenizerRenderer, Tokenizer]:
        source = folder_of(name)
        assert source is not None
        template = template or (CHATML if name != "tiny" else None)
        folder = self._place / f"{name}-{abs(hash(template))}"
        folder.mkdir()
        shutil.copy(source / "tokenizer.json", folder)
        config = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
        config["chat_template"] = template or config["chat_template"]
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        engine = load_tokenizer(folder, {})
        # The larger tokenizer takes a second to read: once is enough.
        return load(str(folder)) if name == "tiny" else TokenizerRenderer(engine), engine

    def with_ids(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        """A prompt given in `pieces` is what a model wrote after each other: every piece encoded by itself."""
        prompt = body.get("prompt")
        if not isinstance(prompt, dict):
            return body
        engine = self.engine(name)
        ids = [token for at, piece in enumerate(prompt["pieces"]) for token in engine.encode(piece, at == 0)]
        return {**body, "prompt": ids}
