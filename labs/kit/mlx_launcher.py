"""Run stock `mlx_lm.server` for as long as the program that started it lives, with a fast BLAS loaded first.

`python -m labs.kit.mlx_launcher --model FOLDER --port N ...`. MLX's own BLAS on a Linux CPU computes some 8 tokens a
second; importing the engine's backend loads an OpenBLAS before MLX, where that matters.
"""

from __future__ import annotations

import threading

from labs.kit.tether import end_with_starter


def main() -> None:
    threading.Thread(target=end_with_starter, name="tether", daemon=True).start()
    import minivllm.backend  # noqa: F401  (before mlx_lm, which imports MLX)

    # isort: split
    from mlx_lm.server import main as serve

    serve()


if __name__ == "__main__":
    main()
