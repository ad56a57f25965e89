"""A file that somebody saves and carries: mlx-lm's prompt cache."""

from __future__ import annotations

from minivllm.policies.access import Access
from minivllm.policies.protocol import Counts, Stats, check_positive

Name = tuple[str | None, str | None]  # whose (salt), and which (session)


class FileCache:
    """One file per conversation, saved once and on purpose, read at the start of every later request of it.

    Models mlx-lm 0.32's prompt-cache files (`mlx_lm.cache_prompt --prompt P --prompt-cache-file F`, then
    `mlx_lm.generate --prompt-cache-file F` for every question): the file holds the prompt it was made from, nobody
    adds the answers to it, and it is used whole or not at all.

        s1: a b c d        saved as s1
        s1: a b c d e f    4 found
        s1: a b x          none found: mlx-lm cannot take a part of a file
        restart            s1: a b c d e f finds 4 again

    What it loses: whatever another name's file holds, and everything said after the saving. What it keeps, it keeps
    through a restart. Nothing is ever evicted; a full disk refuses the next file until somebody deletes one.

    In a replay the first request of a session saves its prompt; traffic without sessions has one file.
    """

    def __init__(self, capacity_units: int | None = None) -> None:
        check_positive(capacity_units=capacity_units)
        self.capacity_units = capacity_units
        self.files: dict[Name, tuple[int, ...]] = {}
        self._counts = Counts()
        self._held_units = 0

    def save(self, name: Name, ids: tuple[int, ...]) -> bool:
        """Write a file, in place of one with this name. False, and nothing has changed, when the disk is too full."""
        replaced = len(self.files.get(name, ()))
        if self.capacity_units is not None and self._held_units - replaced + len(ids) > self.capacity_units:
            return False
        self.files[name] = ids
        self._held_units += len(ids) - replaced
        self._counts.inserted_units += len(ids)
        return True

    def delete(self, name: Name) -> None:
        self._held_units -= len(self.files.pop(name))

    def lookup(self, access: Access) -> int:
        ids = self.files.get((access.salt, access.session), ())
        is_whole = access.unit_ids[: len(ids)] == ids
        return self._counts.looked_up(access, len(ids) if is_whole else 0)

    def insert(self, access: Access) -> None:
        name = (access.salt, access.session)
        if name not in self.files and not self.save(name, access.unit_ids):
            self._counts.num_not_kept += 1

    def restart(self) -> None:
        """Files are still there."""

    def stats(self) -> Stats:
        return Stats.of(self._counts, self.capacity_units, self._held_units)
