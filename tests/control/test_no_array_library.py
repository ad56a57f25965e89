"""The control plane decides with plain Python: importing it imports no array library."""

from __future__ import annotations

import subprocess
import sys

CONTROL_PLANE = (
    "minivllm, minivllm.config, minivllm.protocols, minivllm.request, minivllm.scheduler, minivllm.stats, "
    "minivllm.stop_text, minivllm.cache.audit, minivllm.cache.eviction, minivllm.cache.identity, "
    "minivllm.cache.manager, minivllm.cache.page_pool, minivllm.cache.prefix_index, minivllm.cache.publication, "
    "labs.kit.toy_engine"
)


def test_the_control_plane_needs_no_array_library() -> None:
    script = f"import sys, {CONTROL_PLANE}; print([name for name in ('mlx', 'numpy', 'torch') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
