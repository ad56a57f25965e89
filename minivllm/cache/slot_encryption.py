"""Slot files at rest that only a key opens: a slot file is the conversation.

    magic, 16 bytes of salt, 12 bytes of nonce, then the slot file under AES-256-GCM, which also authenticates it

The key is made of a passphrase and the salt by scrypt (RFC 7914), anew for every file. Library: `cryptography`, which
comes with the extra `encryption`.
"""

from __future__ import annotations

import os

from minivllm.cache.slot_errors import SlotError, SlotFileError
from minivllm.config import ConfigError

MAGIC = b"minivllm-slot-aes256gcm-1\n"
SALT_BYTES, NONCE_BYTES, TAG_BYTES = 16, 12, 16
MIN_PASSPHRASE_CHARS = 16
MAX_BYTES = 2**31 - 1  # of one call, as the library has it
SCRYPT_COST, SCRYPT_BLOCKS, SCRYPT_PARALLEL = 2**15, 8, 1


def passphrase_from(variable: str | None) -> str | None:
    """What the environment variable holds; None when no variable is named. Raises `ConfigError`."""
    if variable is None:
        return None
    passphrase = os.environ.get(variable, "")
    if len(passphrase) < MIN_PASSPHRASE_CHARS:
        state = f"{len(passphrase)} characters" if passphrase else "unset or empty"
        raise ConfigError(
            f"the key in {variable!r}: the variable is {state}; export at least {MIN_PASSPHRASE_CHARS} characters"
        )
    require_library()
    return passphrase


def require_library() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ConfigError("encrypted slot files need cryptography: install the extra 'encryption'") from None


def is_encrypted(data: bytes) -> bool:
    return data.startswith(MAGIC)


def encrypt(data: bytes, passphrase: str) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(data) > MAX_BYTES:
        raise SlotError(f"{len(data)} bytes are too many to encrypt in one piece of at most {MAX_BYTES}")
    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    return MAGIC + salt + nonce + AESGCM(_key(passphrase, salt)).encrypt(nonce, data, MAGIC + salt)


def decrypt(data: bytes, passphrase: str) -> bytes:
    """Raises `SlotFileError` for another key, and for a file that was changed."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    start = len(MAGIC) + SALT_BYTES
    salt, nonce, sealed = data[len(MAGIC) : start], data[start : start + NONCE_BYTES], data[start + NONCE_BYTES :]
    if len(sealed) < TAG_BYTES:
        raise SlotFileError(f"its {len(data)} bytes are too few for an encrypted slot file: it is cut")
    try:
        return AESGCM(_key(passphrase, salt)).decrypt(nonce, sealed, MAGIC + salt)
    except InvalidTag:
        raise SlotFileError("it was encrypted with another key, or is damaged") from None


def _key(passphrase: str, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt, 32, SCRYPT_COST, SCRYPT_BLOCKS, SCRYPT_PARALLEL).derive(passphrase.encode())
