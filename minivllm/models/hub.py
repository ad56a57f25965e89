"""A model folder from the Hugging Face Hub, cached copies first."""

from __future__ import annotations

from pathlib import Path

from minivllm.home import home
from minivllm.models.errors import ModelError
from minivllm.models.weights import weight_files

_PATTERNS = ["*.json", "model*.safetensors", "tokenizer.model", "*.txt", "*.jinja", "LICENSE*"]


def hub_folder(repository: str) -> Path:
    """The snapshot of `owner/name`: from the user's Hub cache, from ours, else downloaded into ours."""
    from huggingface_hub import constants

    for cache in (Path(constants.HF_HUB_CACHE), _own_cache()):
        folder = _cached(repository, cache)
        if folder is not None:
            return folder
    return _downloaded(repository)


def _own_cache() -> Path:
    return home() / "hub"


def _cached(repository: str, cache: Path) -> Path | None:
    """A complete snapshot in `cache`, without asking the network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repository, cache_dir=cache, local_files_only=True, allow_patterns=_PATTERNS))
        weight_files(folder)
    except (
        LocalEntryNotFoundError,
        ModelError,
    ):  # an interrupted download leaves a snapshot without its weights
        return None
    return folder if (folder / "config.json").is_file() else None


def _downloaded(repository: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(repository, cache_dir=_own_cache(), allow_patterns=_PATTERNS))
    except GatedRepoError as error:
        raise ModelError(
            f"{repository} is gated: accept its licence on huggingface.co and log in with `hf auth login`"
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError(f"{repository} is neither a folder here nor a model on the Hub that you may read") from error
    except Exception as error:  # its HTTP client's types, and a missing file among them, have no common base
        raise ModelError(
            f"{repository} is not cached, and the Hugging Face Hub cannot be reached; check the network "
            f"(HF_ENDPOINT, HF_HUB_OFFLINE) or use 'smollm2-135m', which needs no Hub. "
            f"{type(error).__name__}: {error}"
        ) from error
