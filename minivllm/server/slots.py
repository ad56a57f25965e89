"""`GET /slots` and `POST /slots/{id}?action=save|restore|erase`, in llama-server's shapes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from minivllm.server.body import read_object
from minivllm.server.engine_thread import EngineThread
from minivllm.server.errors import ApiError, invalid_value
from minivllm.server.fields import parse
from minivllm.server.openai import SlotFile
from minivllm.server.prepare import Preparer

if TYPE_CHECKING:
    from minivllm.engine import Engine
    from minivllm.slots import EngineSlot

ACTIONS = ("save", "restore", "erase")


def slot_routes(engine: EngineThread, model_name: str, preparer: Preparer, expose_text: bool) -> APIRouter:
    router = APIRouter()

    @router.get("/slots")
    async def slots() -> list[dict[str, Any]]:
        """What each slot remembers. The conversation itself only where the server was started to show it."""
        context_tokens = preparer.facts.max_model_len
        described = await asyncio.wrap_future(engine.call(_describe_all))
        shared = {"n_ctx": context_tokens, "model": model_name}
        answer = []
        for described_slot, token_ids in described:
            entry = {**described_slot, **shared}
            if expose_text:
                entry["prompt"] = await run_in_threadpool(preparer.decode, token_ids)
            answer.append(entry)
        return answer

    @router.post("/slots/{id_slot}")
    async def act(id_slot: str, request: Request) -> dict[str, Any]:
        action = request.query_params.get("action")
        if action not in ACTIONS:
            raise invalid_value(f"action={action!r:.80} is not one of {', '.join(ACTIONS)}", "action")
        folder = _folder(preparer)
        number = _number(id_slot, preparer.facts.config.num_slots)
        if action == "erase":
            await read_object(request, may_be_empty=True)
            return await _in_engine(lambda running: _erase(running.slots[number]))
        asked = parse(SlotFile, await read_object(request))
        move = _save if action == "save" else _restore
        return await _in_engine(lambda running: move(running.slots[number], folder, asked))

    async def _in_engine(work: Callable[[Engine], dict[str, Any]]) -> dict[str, Any]:
        from minivllm.cache.slot_errors import SlotBusyError, SlotError, SlotNameError, SlotWriteError

        try:
            return await asyncio.wrap_future(engine.call(work))
        except SlotBusyError as error:
            raise ApiError(409, str(error), code="slot_busy") from None
        except SlotWriteError as error:
            raise ApiError(500, str(error), code="slot_not_saved") from None
        except SlotNameError as error:
            raise invalid_value(str(error), "filename") from None
        except SlotError as error:
            raise ApiError(400, str(error), code="slot_refused", param="filename") from None

    return router


def _describe_all(engine: Engine) -> list[tuple[dict[str, Any], tuple[int, ...]]]:
    """Each slot in llama-server's words, and its tokens."""
    identity = asdict(engine.identity)
    return [({**_describe(slot), "identity": identity}, slot.token_ids) for slot in engine.slots]


def _describe(slot: EngineSlot) -> dict[str, Any]:
    return {
        "id": slot.slot_id,
        "is_processing": slot.is_busy,
        "id_task": slot.last_request_id,
        "n_prompt_tokens": len(slot.token_ids),
        "n_prompt_tokens_cache": slot.num_cached_tokens,
        "n_prompt_tokens_processed": slot.num_computed_tokens,
        "n_held_tokens": slot.num_held_tokens,
        "is_salted": slot.salt is not None,
    }


def _save(slot: EngineSlot, folder: Path, asked: SlotFile) -> dict[str, Any]:
    from minivllm.cache.slot_folder import path_in

    if asked.cache_salt is not None:
        raise invalid_value("cache_salt is for restoring: a slot knows the salt of its sequence", "cache_salt")
    began_s = time.monotonic()
    done = slot.save(path_in(folder, asked.filename))
    return {
        "id_slot": slot.slot_id,
        "filename": asked.filename,
        "n_saved": done.num_tokens,
        "n_written": done.num_bytes,
        "timings": {"save_ms": _ms_since(began_s)},
    }


def _restore(slot: EngineSlot, folder: Path, asked: SlotFile) -> dict[str, Any]:
    from minivllm.cache.slot_folder import path_in

    began_s = time.monotonic()
    done = slot.restore(path_in(folder, asked.filename), asked.cache_salt)
    return {
        "id_slot": slot.slot_id,
        "filename": asked.filename,
        "n_restored": done.num_tokens,
        "n_read": done.num_bytes,
        "timings": {"restore_ms": _ms_since(began_s)},
    }


def _erase(slot: EngineSlot) -> dict[str, Any]:
    began_s = time.monotonic()
    num_erased = slot.erase()
    return {"id_slot": slot.slot_id, "n_erased": num_erased, "timings": {"erase_ms": _ms_since(began_s)}}


def _folder(preparer: Preparer) -> Path:
    folder = preparer.facts.config.slot_save_path
    if folder is None:
        message = "this server does not save, restore or erase slots: start it with --slot-save-path FOLDER"
        raise ApiError(501, message, code="not_supported")
    return Path(folder)


def _number(text: str, num_slots: int) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) >= num_slots:
        there = f"0 to {num_slots - 1}" if num_slots else "none"
        raise invalid_value(f"{text!r:.80} is no slot: there are {there}", "id_slot")
    return int(text)


def _ms_since(began_s: float) -> float:
    return (time.monotonic() - began_s) * 1000
