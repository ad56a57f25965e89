"""Test doubles of real servers: the `tiny` engine behind a layer that speaks as vLLM, SGLang, llama-server, mlx-lm do.

    with double("vllm", faults=Faults(cache_off=True)) as server:
        record = labbook.measure.measure(server.base_url)

What is reused comes from the real engine's pages, what is computed takes real computing. `Faults` are what goes wrong
on purpose. Only chat completions are spoken, and the routes around them; `/v1/completions` is not.
"""

from labs.kit.doubles.errors import DoubleError
from labs.kit.doubles.faults import Faults
from labs.kit.doubles.server_double import Double
from labs.kit.doubles.starting import DIALECTS, double

__all__ = ["DIALECTS", "Double", "DoubleError", "Faults", "double"]
