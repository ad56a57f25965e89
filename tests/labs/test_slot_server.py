"""A conversation over two servers: saved by one, restored by the other, on `tiny`."""

from __future__ import annotations

from pathlib import Path

import pytest

from labbook.errors import ServerError
from labs.kit.slot_server import SlotServer

MESSAGES = [{"role": "user", "content": "The keeper writes one page a day. " * 6}]


def test_what_one_server_saved_another_goes_on_from(tmp_path: Path) -> None:
    folder = tmp_path / "slots"
    first = SlotServer.start("tiny", folder)
    try:
        answer = first.ask(MESSAGES, id_slot=1, max_tokens=4)
        saved = first.save(1, "talk.bin")
    finally:
        first.stop()
        first.stop()
    assert (answer.cached_tokens, saved["n_saved"]) == (0, answer.prompt_tokens + 3)
    assert saved["n_written"] == (folder / "talk.bin").stat().st_size
    second = SlotServer.start("tiny", folder)
    try:
        cold = second.ask(MESSAGES, id_slot=0, max_tokens=4)
        restored = [second.ask_from_file("talk.bin", MESSAGES, 0, 4) for _ in range(2)]
        with pytest.raises(ServerError, match="is not a plain name"):
            second.restore(0, "../talk.bin")
    finally:
        second.stop()
    assert cold.cached_tokens == 0
    for one in restored:
        assert one.answer.cached_tokens == (answer.prompt_tokens - 1) // 16 * 16 > 0
        assert one.answer.text == cold.text == answer.text
        assert one.total_ms > one.restore_ms > 0
