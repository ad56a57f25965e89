"""stub"""

from __future__ import annotations

from minivllm.metal.signature import KernelTexts, Signature


def check_address_spaces(texts: KernelTexts, signature: Signature) -> None:
    pass
