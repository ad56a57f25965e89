"""What a stored page depends on besides its tokens. Two engines with equal identities may exchange pages.

Everything here changes the bytes of a page; nothing else may be in it: a pool size or a batch limit in the identity
would turn every restart with other settings into a miss on good pages (known fault PC-08).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CacheIdentity:
    """The fields of a page's identity; the salt is kept beside it, per request."""

    weights_id: str
    tokenizer_digest: str
    num_layers: int
    num_kv_heads: int
    head_dim: int
    kv_dtype: str
    kv_bits: int | None
    kv_group_size: int | None
    kv_head_pages: int
    page_size: int
    rope_theta: float
    rope_traditional: bool
    rope_scaling: Mapping[str, Any] | None = None
    adapter: str | None = None

    def digest(self) -> bytes:
        """sha256 over the fields as canonical JSON."""
        fields = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(fields.encode()).digest()
