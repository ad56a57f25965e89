"""The format of a slot file: one safetensors file that holds a sequence, and everything its pages depend on.

    8 bytes      length of the header, little-endian
    header       JSON: where each tensor lies; in `__metadata__`, strings all:
                     format       "minivllm-slot"              version   "1"
                     model        name, for people             num_tokens
                     salt         "none", or "sha256:" and the digest of the salt (the salt itself is a secret)
                     identity.F   each field F of `CacheIdentity`, as JSON
                     checksum     sha256 over the whole file, with 64 zeros in the place of these digits
    data         token_ids                            int64 [tokens]
                 layers.N.keys.*, layers.N.values.*   as stored, [tokens, num_kv_heads, ...]:
                     full                     one number per element, of the tokens in full precision
                     packed, scales, biases   `mx.quantize`'s three arrays, of the tokens that are quantized

The container: https://huggingface.co/docs/safetensors/index#format. No array library: a tensor here is bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minivllm.cache.slot_errors import SlotFileError

FORMAT, VERSION = "minivllm-slot", "1"
NO_SALT = "none"
MAX_HEADER_BYTES = 16 * 1024**2
_ZEROS = "0" * 64
_CHECKSUM_KEY = b'"checksum":"'


@dataclass(frozen=True, slots=True)
class Tensor:
    """`dtype` as safetensors names it: F32, F16, BF16, U32 or I64; `data` is little-endian, row by row."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes | bytearray

    @property
    def kind(self) -> tuple[str, tuple[int, ...]]:
        return self.dtype, self.shape


@dataclass(frozen=True, slots=True)
class SlotContent:
    """What a file says. `identity`: `CacheIdentity` as a plain dict; `tensors`: keys and values by name."""

    model: str
    token_ids: tuple[int, ...]
    salt_digest: str
    identity: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


def salt_digest(salt: str | None) -> str:
    """How a file names a salt: it must be told again to whoever restores, and is not to be read from the file."""
    if salt is None:
        return NO_SALT
    return "sha256:" + hashlib.sha256(salt.encode("utf-8", "surrogatepass")).hexdigest()


def encode(content: SlotContent) -> bytes:
    token_ids = struct.pack(f"<{len(content.token_ids)}q", *content.token_ids)
    tensors = {**content.tensors, "token_ids": Tensor("I64", (len(content.token_ids),), token_ids)}
    header = _header(content, tensors)
    hasher = hashlib.sha256(header)
    for tensor in tensors.values():
        hasher.update(tensor.data)
    place = header.index(_CHECKSUM_KEY) + len(_CHECKSUM_KEY)
    sealed = header[:place] + hasher.hexdigest().encode() + header[place + len(_ZEROS) :]
    return b"".join([sealed, *(tensor.data for tensor in tensors.values())])


def _header(content: SlotContent, tensors: Mapping[str, Tensor]) -> bytes:
    metadata = {
        "checksum": _ZEROS,
        "format": FORMAT,
        "version": VERSION,
        "model": content.model,
        "num_tokens": str(len(content.token_ids)),
        "salt": content.salt_digest,
        **{f"identity.{name}": json.dumps(value, sort_keys=True) for name, value in content.identity.items()},
    }
    entries: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + len(tensor.data)
        entries[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that tensors are aligned
    return struct.pack("<Q", len(text)) + text


def decode(data: bytes) -> SlotContent:
    """Everything in a file, verified as a whole. Raises `SlotFileError` with the reason."""
    from safetensors import SafetensorError, deserialize

    metadata = read_metadata(data)
    _check_checksum(data, metadata)
    try:
        tensors = {
            name: Tensor(entry["dtype"], tuple(entry["shape"]), entry["data"]) for name, entry in deserialize(data)
        }
    except SafetensorError as error:
        raise SlotFileError(f"its tensors cannot be read: {error}") from None
    return SlotContent(
        model=metadata.get("model", ""),
        token_ids=_token_ids(tensors.pop("token_ids", None), metadata),
        salt_digest=metadata.get("salt", ""),
        identity=_identity(metadata),
        tensors=tensors,
    )


def read_metadata(data: bytes) -> dict[str, str]:
    """The strings of the header: nothing is verified but the format and its version. Raises `SlotFileError`."""
    if len(data) < 8:
        raise SlotFileError(f"its {len(data)} bytes are too few for a slot file")
    (num_bytes,) = struct.unpack("<Q", data[:8])
    if num_bytes > min(MAX_HEADER_BYTES, len(data) - 8):
        raise SlotFileError(f"a header of {num_bytes} bytes does not fit: it is cut, or no safetensors file")
    try:
        header = json.loads(data[8 : 8 + num_bytes].decode("utf-8"))
    except (ValueError, RecursionError):
        raise SlotFileError("its header is not JSON: it is damaged, or no safetensors file") from None
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise SlotFileError(f"it is no slot file: its header names no format {FORMAT!r}")
    if metadata.get("version") != VERSION:
        raise SlotFileError(f"its format version is {metadata.get('version')!r:.40}, this program reads {VERSION!r}")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise SlotFileError("its header holds other metadata than strings")
    return metadata


def _check_checksum(data: bytes, metadata: Mapping[str, str]) -> None:
    claimed = metadata.get("checksum", "")
    entry = _CHECKSUM_KEY + claimed.encode() + b'"'
    place = data.find(entry)
    if len(claimed) != len(_ZEROS) or place < 0:
        raise SlotFileError("its header has no checksum")
    hasher = hashlib.sha256(memoryview(data)[: place + len(_CHECKSUM_KEY)])
    hasher.update(_ZEROS.encode())
    hasher.update(memoryview(data)[place + len(_CHECKSUM_KEY) + len(_ZEROS) :])
    if hasher.hexdigest() != claimed:
        raise SlotFileError("its checksum does not fit its content: it is damaged")


def _token_ids(tensor: Tensor | None, metadata: Mapping[str, str]) -> tuple[int, ...]:
    if tensor is None or tensor.dtype != "I64" or len(tensor.shape) != 1:
        raise SlotFileError("it has no token ids")
    token_ids = struct.unpack(f"<{tensor.shape[0]}q", tensor.data)
    if not token_ids or str(len(token_ids)) != metadata.get("num_tokens"):
        raise SlotFileError(f"it has {len(token_ids)} token ids and claims {metadata.get('num_tokens')!r:.40}")
    return token_ids


def _identity(metadata: Mapping[str, str]) -> dict[str, Any]:
    fields = {key.removeprefix("identity."): text for key, text in metadata.items() if key.startswith("identity.")}
    try:
        return {name: json.loads(text) for name, text in fields.items()}
    except ValueError:
        raise SlotFileError("a field of its identity is not JSON") from None
