"""What can be wrong with a slot or a slot file. Every message names the thing and what would be right."""

from __future__ import annotations


class SlotError(ValueError):
    """The slot or the file cannot be used as asked; nothing was changed."""


class SlotNameError(SlotError):
    """A file name that is not a plain name inside the folder of slot files."""


class SlotFileError(SlotError):
    """A file that is no slot file, is damaged, or belongs to another model or setting."""


class SlotWriteError(SlotError):
    """The disk or its permissions stand in the way."""


class SlotBusyError(RuntimeError):
    """A request runs in the slot: its sequence is not settled."""
