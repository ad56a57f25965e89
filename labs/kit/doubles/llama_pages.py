"""llama-server's pages about itself: /metrics, /props and /slots, as captured from build 11434.

Of /props and /slots the double tells what it has; settings of samplers that it lacks are left out.
"""

from __future__ import annotations

import argparse
from typing import Any

from labs.kit.doubles.exposition import family, page, sample
from labs.kit.doubles.memory import Slots
from labs.kit.doubles.tally import Tally
from labs.kit.doubles.tiny_engine import TinyEngine
from minivllm.models.tiny import BOS, CHAT_TEMPLATE, END


def metrics_page(tally: Tally) -> str:
    """No labels, no help. `prompt_tokens_total` are the computed tokens alone."""
    counters: dict[str, int | str] = {
        "prompt_tokens_total": tally.computed_tokens,
        "prompt_tokens_cached_total": tally.hit_tokens,
        "prompt_seconds_total": _short(tally.prompt_s),
        "tokens_predicted_total": tally.generated_tokens,
        "tokens_predicted_seconds_total": _short(tally.decode_s),
        "n_decode_total": tally.generated_tokens,
        "n_tokens_max": tally.longest_tokens,
    }
    gauges: dict[str, int | str] = {
        "prompt_tokens_seconds": _rate(tally.computed_tokens, tally.prompt_s),
        "predicted_tokens_seconds": _rate(tally.generated_tokens, tally.decode_s),
        "requests_processing": 0,
        "requests_deferred": 0,
    }
    kinds = {**dict.fromkeys(counters, "counter"), **dict.fromkeys(gauges, "gauge")}
    values = {**counters, **gauges}
    return page(
        *(
            family(f"llamacpp:{name}", kind, sample(f"llamacpp:{name}", {}, values[name]))
            for name, kind in kinds.items()
        )
    )


def props(model: str, engine: TinyEngine, memory: Slots, build: str, flags: argparse.Namespace) -> dict[str, Any]:
    return {
        "default_generation_settings": {"params": _params(), "n_ctx": engine.facts.max_model_len},
        "total_slots": len(memory.slots),
        "model_alias": model,
        "model_path": "tiny",
        "modalities": {"vision": False, "video": False, "audio": False},
        "endpoint_slots": flags.slots,
        "endpoint_props": False,
        "endpoint_metrics": flags.metrics,
        "ui": False,
        "chat_template": CHAT_TEMPLATE,
        "bos_token": BOS,
        "eos_token": END,
        "build_info": build,
        "is_sleeping": False,
    }


def slots(memory: Slots, engine: TinyEngine) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "n_ctx": engine.facts.max_model_len,
            "speculative": False,
            "is_processing": slot.is_busy,
            "id_task": slot.last_used,
            "n_prompt_tokens": len(slot.tokens),
            "n_prompt_tokens_processed": 0,
            "n_prompt_tokens_cache": 0,
            "params": _params(),
            "next_token": [{"has_next_token": False, "has_new_line": False, "n_remain": -1, "n_decoded": 0}],
        }
        for number, slot in enumerate(memory.slots)
    ]


def _params() -> dict[str, Any]:
    return {"temperature": 0.8, "top_p": 1.0, "max_tokens": -1, "n_predict": -1, "stream": False}


def _short(seconds: float) -> str:
    return f"{seconds:.6g}"


def _rate(tokens: int, seconds: float) -> str:
    return f"{tokens / seconds:.6g}" if seconds else "0"
