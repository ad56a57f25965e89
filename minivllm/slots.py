"""One slot of an engine, for those who call: `llm.slots[0].save(path)`, `.restore(path)`, `.erase()`.

To be used in the engine's own thread, between two steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from minivllm.backend import mx
from minivllm.cache import slot_folder
from minivllm.cache.sequence_storage import put_in, shapes, take_out, to_arrays, to_tensors
from minivllm.cache.slot_encryption import passphrase_from
from minivllm.cache.slot_errors import SlotBusyError, SlotError, SlotFileError
from minivllm.cache.slot_file import SlotContent, salt_digest
from minivllm.cache.slot_retention import prune
from minivllm.cache.slots import Slot
from minivllm.config import ConfigError, SamplingParams
from minivllm.protocols import Moment
from minivllm.request import Request

if TYPE_CHECKING:
    from minivllm.engine import Engine

PathLike = str | os.PathLike[str]
Check = Callable[[Request], None]
"""Raises when the pages of this request do not hold what they should."""


@dataclass(frozen=True, slots=True)
class SlotFileOptions:
    """How an engine writes its slot files. Nothing here changes what a page holds.

    `save_limit_bytes`: what all slot files of a folder may take together; None: whatever they take. `key_env` names
    the environment variable that holds the passphrase of encrypted files; None: they are not encrypted.
    """

    save_limit_bytes: int | None = None
    key_env: str | None = None

    def __post_init__(self) -> None:
        limit = self.save_limit_bytes
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise ConfigError(f"save_limit_bytes={limit!r} is not a number of bytes above 0: give one, or None")
        self.passphrase()

    def passphrase(self) -> str | None:
        return passphrase_from(self.key_env)


@dataclass(frozen=True, slots=True)
class Transfer:
    """What went into a file, or came out of it."""

    path: Path
    num_tokens: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class StoredSequence:
    """A sequence outside the pool: its tokens, and their keys and values as `take_out` names them."""

    token_ids: tuple[int, ...]
    arrays: Mapping[str, mx.array]


def engine_slots(engine: Engine) -> tuple[EngineSlot, ...]:
    """The slots of an engine. Raises `ConfigError` when its slot files could not be written."""
    if engine.config.slot_save_path is not None:
        try:
            slot_folder.make_private(Path(engine.config.slot_save_path))
        except SlotError as error:
            raise ConfigError(f"slot_save_path: {error}") from None
    return tuple(EngineSlot(engine, slot) for slot in engine.slot_memory.slots)


class EngineSlot:
    def __init__(self, engine: Engine, slot: Slot) -> None:
        self._engine = engine
        self._slot = slot

    def __repr__(self) -> str:
        state = "busy" if self.is_busy else f"{self.num_held_tokens} of {len(self.token_ids)} tokens held"
        return f"EngineSlot({self.slot_id}, {state})"

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def slot_id(self) -> int:
        return self._slot.slot_id

    @property
    def is_busy(self) -> bool:
        return self._slot.is_busy

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The last sequence whose keys and values were computed here; of a running request, what it has so far."""
        running = self._slot.request
        return self._slot.token_ids if running is None else tuple(running.token_ids[: running.num_computed_tokens])

    @property
    def salt(self) -> str | None:
        return self._slot.salt if self._slot.request is None else self._slot.request.cache_salt

    @property
    def num_held_tokens(self) -> int:
        """Tokens of the sequence that the next request could restore here; the others were evicted."""
        return self._engine.slot_memory.num_held_tokens(self._slot)

    @property
    def last_request_id(self) -> str | None:
        """The request that runs here, or ran here last."""
        return self._slot.last_request_id

    @property
    def num_cached_tokens(self) -> int:
        """Prompt tokens that the last request did not have to compute."""
        return self._slot.num_cached_tokens

    @property
    def num_computed_tokens(self) -> int:
        """Prompt tokens that the last request computed."""
        return self._slot.num_computed_tokens

    def save(self, path: PathLike) -> Transfer:
        """Write the held tokens to a slot file, whole or not at all.

        A plain name lies in the engine's `slot_save_path`, when it has one. With a `save_limit_bytes`, the oldest
        other slot files beside it are deleted until the rest fits. Raises `SlotBusyError` and `SlotError`.
        """
        engine, target = self._engine, self._path(path)
        held = self.take_out()
        content = SlotContent(
            model=engine.model_name,
            token_ids=held.token_ids,
            salt_digest=salt_digest(self._slot.salt),
            identity=asdict(engine.identity),
            tensors=to_tensors(held.arrays),
        )
        limit_bytes = engine.slot_options.save_limit_bytes
        num_bytes = slot_folder.write(target, content, engine.slot_options.passphrase(), limit_bytes)
        if limit_bytes is not None:
            prune(target.parent, limit_bytes, keep=target)
        return Transfer(target, len(held.token_ids), num_bytes)

    def restore(self, path: PathLike, cache_salt: str | None = None) -> Transfer:
        """Take in a slot file: its pages are published, and this slot remembers its sequence.

        `cache_salt` must be that of the saved sequence: the file holds a digest of it only. Everything is read and
        verified before anything changes. Raises `SlotBusyError`, `SlotFileError`, `SlotError`.
        """
        self._require_idle()
        source = self._path(path)
        content, num_bytes = slot_folder.read(source, self._engine.slot_options.passphrase())
        self._require_same_identity(content, cache_salt, source.name)
        self._require_fitting_tokens(content.token_ids, source.name)
        try:
            arrays = to_arrays(content.tensors, shapes(self._engine.storage, len(content.token_ids)))
        except SlotFileError as error:
            raise SlotFileError(f"{source.name} is refused: {error}") from None
        self.put_in(StoredSequence(content.token_ids, arrays), cache_salt)
        return Transfer(source, len(content.token_ids), num_bytes)

    def erase(self) -> int:
        """Forget the sequence and drop its pages that nobody else holds; returns how many of its tokens were held."""
        self._require_idle()
        num_tokens = self._engine.slot_memory.erase(self._slot)
        self._engine.poison_reclaimed_pages()
        return num_tokens

    def take_out(self) -> StoredSequence:
        """The held tokens with their keys and values, copied. Raises `SlotError` when there are none."""
        self._require_idle()
        memory, storage = self._engine.slot_memory, self._engine.storage
        num_tokens = memory.num_held_tokens(self._slot)
        if not num_tokens:
            remembered = f"{len(self._slot.token_ids)} tokens are remembered, and none is held any more"
            raise SlotError(f"slot {self.slot_id} holds nothing: {remembered}")
        arrays = take_out(storage, memory.held_pages(self._slot), num_tokens)
        return StoredSequence(self._slot.token_ids[:num_tokens], arrays)

    def put_in(self, sequence: StoredSequence, cache_salt: str | None, check: Check | None = None) -> None:
        """Load a sequence into pages, publish them, remember it. Evicts what it must, as a request does.

        Pages that are cached already are shared, and not written. With `check` none is: all are new, and it is called
        before anybody can find them; what it raises leaves the slot and what is cached as they were.
        """
        engine, num_tokens = self._engine, len(sequence.token_ids)
        if not engine.config.prefix_cache:
            raise SlotError("prefix_cache is off: what would be restored could not be found")
        request = Request(f"restore-{self.slot_id}", sequence.token_ids, SamplingParams(max_tokens=1), cache_salt, 0.0)
        request.is_counted, request.may_read_cache = False, check is None
        if not engine.manager.try_admit(request):
            needed = engine.manager.pages_for(num_tokens)
            raise SlotError(f"{needed} pages are needed beside the requests that run: try again when they have ended")
        try:
            num_shared_tokens = request.num_computed_tokens
            engine.manager.extend(request, num_tokens)
            engine.poison_reclaimed_pages()
            put_in(engine.storage, request.page_table, num_tokens, sequence.arrays, num_shared_tokens)
            if check is not None:
                check(request)
            request.num_computed_tokens = num_tokens
            engine.manager.publish(request, Moment.ENDED)
            engine.manager.give_up_partial(self.slot_id)
            engine.slot_memory.remember(self._slot, request)
        finally:
            engine.manager.release(request)
            engine.poison_reclaimed_pages()

    def _path(self, path: PathLike) -> Path:
        folder = self._engine.config.slot_save_path
        if folder is None or not isinstance(path, str) or Path(path).name != path:
            return Path(path).absolute()
        return slot_folder.path_in(Path(folder), path)

    def _require_idle(self) -> None:
        if self.is_busy:
            raise SlotBusyError(f"slot {self.slot_id} is busy: wait until its request has ended, or abort it")

    def _require_same_identity(self, content: SlotContent, cache_salt: str | None, name: str) -> None:
        """Naming every field that differs, and both values; of a salt its digests."""
        ours = {**asdict(self._engine.identity), "salt": salt_digest(cache_salt)}
        theirs = {**content.identity, "salt": content.salt_digest}
        differences = [
            f"{field} is {theirs.get(field, 'missing')!r:.80} in the file and {ours.get(field, 'unknown')!r:.80} here"
            for field in {**ours, **theirs}
            if field not in ours or field not in theirs or theirs[field] != ours[field]
        ]
        if differences:
            raise SlotFileError(f"{name} is refused, it was saved under other settings: {'; '.join(differences)}")

    def _require_fitting_tokens(self, token_ids: Sequence[int], name: str) -> None:
        limits = self._engine.limits
        if not all(0 <= token_id < limits.vocab_size for token_id in token_ids):
            raise SlotFileError(f"{name} is refused: a token id lies outside the vocabulary of {limits.vocab_size}")
        longest = min(limits.max_model_len, limits.pool_tokens)
        if len(token_ids) > longest:
            raise SlotFileError(f"{name} is refused: its {len(token_ids)} tokens do not fit {longest} in this engine")
