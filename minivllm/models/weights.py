"""The weight files of a model folder: which they are, whether they are whole, what they hold."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minivllm.home import remembered
from minivllm.models.errors import ModelError
from minivllm.models.spec import ModelSpec

_INDEX = "model.safetensors.index.json"
_HASH_CHUNK_BYTES = 1 << 20
_SAMPLE = 4  # names to show of a long list


@dataclass(frozen=True)
class TensorInfo:
    """One tensor in a safetensors header; `dtype` is the format's own name ("F32", "BF16", "U32")."""

    dtype: str
    shape: tuple[int, ...]


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a model folder, complete, in name order."""
    index = folder / _INDEX
    if index.is_file():
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
        missing = [name for name in names if not (folder / name).is_file()]
        if missing or not names:
            raise ModelError(
                f"{folder} lacks weight files that its index names: {sample(missing)}; fetch the model again"
            )
        return [folder / name for name in names]
    files = sorted(folder.glob("model*.safetensors"))
    if files:
        return files
    others = sorted(file.name for pattern in ("*.bin", "*.pt", "*.npz", "*.gguf") for file in folder.glob(pattern))
    hint = f"; it has {sample(others)}, which are not read from a folder" if others else ""
    raise ModelError(
        f"{folder} has no weights (model.safetensors or its index){hint}; use a complete MLX or Hugging Face folder"
    )


def read_tensor_infos(files: Sequence[Path]) -> dict[str, TensorInfo]:
    """Name, type and shape of every tensor; ModelError for a truncated or damaged file.

    Format (github.com/huggingface/safetensors): 8 bytes of header length (little-endian), JSON header, data.
    """
    infos: dict[str, TensorInfo] = {}
    for file in files:
        infos |= _tensor_infos(file)
    return infos


def weights_digest(files: Sequence[Path], spec: ModelSpec) -> str:
    """A digest of what the weights and the spec say, whatever the files are called and wherever they lie."""
    digest = hashlib.sha256(json.dumps(asdict(spec), sort_keys=True).encode())
    for file in files:
        digest.update(file_digest(file).encode())
    return digest.hexdigest()


def file_digest(file: Path) -> str:
    """The SHA-256 of a file in hex; remembered by path, time and length."""
    stat = file.stat()
    key = f"{file.resolve()} {stat.st_mtime_ns} {stat.st_size}"
    return str(remembered("file-digests", key, lambda: _sha256(file)))


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file of a model folder."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{file.parent} has no {file.name}; use a complete MLX or Hugging Face model folder") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {error}; fetch the model again") from error
    if not isinstance(content, dict):
        raise ModelError(f"{file} is not a JSON object; fetch the model again")
    return content


def require_same_tensors(expected: Mapping[str, tuple[int, ...]], found: Mapping[str, TensorInfo]) -> None:
    """ModelError naming tensors that are missing, that no module takes, or whose shape is wrong."""
    missing = sorted(expected.keys() - found.keys())
    if missing:
        raise ModelError(f"the weights lack {len(missing)} tensors: {sample(missing)}; fetch the complete model")
    extra = sorted(found.keys() - expected.keys())
    if extra:
        raise ModelError(f"the weights have {len(extra)} tensors that this model_type does not use: {sample(extra)}")
    for name, shape in expected.items():
        if found[name].shape != shape:
            raise ModelError(f"tensor {name} has shape {found[name].shape}; config.json asks for {shape}")


def sample(names: Sequence[str]) -> str:
    """The first few of a list of names, and how many more there are."""
    more = f" and {len(names) - _SAMPLE} more" if len(names) > _SAMPLE else ""
    return (", ".join(names[:_SAMPLE]) or "none") + more


def _tensor_infos(file: Path) -> dict[str, TensorInfo]:
    num_bytes = file.stat().st_size
    try:
        with open(file, "rb") as stream:
            (header_bytes,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(min(header_bytes, num_bytes)))
        header.pop("__metadata__", None)
        infos = {name: TensorInfo(entry["dtype"], tuple(entry["shape"])) for name, entry in header.items()}
        data_bytes = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{file} is truncated or not a safetensors file ({num_bytes} bytes); fetch it again"
        ) from error
    expected_bytes = 8 + header_bytes + data_bytes
    if num_bytes < expected_bytes:
        raise ModelError(
            f"{file} is truncated: its header describes {expected_bytes} bytes, it has {num_bytes}; fetch it again"
        )
    return infos


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        while chunk := stream.read(_HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
