"""The mini engine as a server with a folder for slot files: chats that name their slot, save, restore, stop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labbook.connection import Connection, parsed_json
from labbook.urls import parse
from labs.kit.serving import Server, start_server

SKIPPED = "skipped: the notebook may not stop and restart a server that it did not start"
TIMEOUT_S = 120.0
NUM_PAGES = 256

Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class SlotAnswer:
    """`prompt_ms` is what the server says it took until the first token of the answer."""

    text: str
    prompt_tokens: int
    cached_tokens: int
    prompt_ms: float


@dataclass(frozen=True)
class Restored:
    """An answer behind a slot file, and what reading the file took before it."""

    answer: SlotAnswer
    restore_ms: float

    @property
    def total_ms(self) -> float:
        return self.restore_ms + self.answer.prompt_ms


class SlotServer:
    """Every method raises `ServerError` with what the server said."""

    def __init__(self, server: Server) -> None:
        urls = parse(server.base_url)
        self._server, self._root, self._chat = server, urls.root, urls.chat
        self._connection = Connection(urls)

    @classmethod
    def start(cls, model: str, folder: Path) -> SlotServer:
        """Keys and values are float32 on every device, so that files have the same size everywhere."""
        settings = {"--slot-save-path": str(folder), "--kv-dtype": "float32", "--num-pages": str(NUM_PAGES)}
        flags = [word for setting in settings.items() for word in setting]
        return cls(start_server(model, flags=flags, is_quiet=True))

    def ask(self, messages: Messages, id_slot: int, max_tokens: int) -> SlotAnswer:
        """The greedy answer, `max_tokens` long."""
        asked = {"messages": list(messages), "id_slot": id_slot, "max_tokens": max_tokens}
        told = self._post(self._chat, {**asked, "temperature": 0.0, "ignore_eos": True})
        return SlotAnswer(
            text=told["choices"][0]["message"]["content"],
            prompt_tokens=told["usage"]["prompt_tokens"],
            cached_tokens=told["usage"]["prompt_tokens_details"]["cached_tokens"],
            prompt_ms=told["timings"]["prompt_ms"],
        )

    def save(self, id_slot: int, filename: str) -> dict[str, Any]:
        return self._post(f"{self._root}/slots/{id_slot}?action=save", {"filename": filename})

    def restore(self, id_slot: int, filename: str) -> dict[str, Any]:
        return self._post(f"{self._root}/slots/{id_slot}?action=restore", {"filename": filename})

    def ask_from_file(self, filename: str, messages: Messages, id_slot: int, max_tokens: int) -> Restored:
        """Forget everything that is cached, restore the file, and ask."""
        self._post(f"{self._root}/reset_prefix_cache", {})
        restore_ms = self.restore(id_slot, filename)["timings"]["restore_ms"]
        return Restored(self.ask(messages, id_slot, max_tokens), restore_ms)

    def stop(self) -> None:
        """End the process. May be called twice."""
        self._connection.close()
        self._server.stop()

    def _post(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = parsed_json(self._connection.text("POST", url, json.dumps(body).encode(), TIMEOUT_S))
        assert isinstance(answer, dict)
        return answer
