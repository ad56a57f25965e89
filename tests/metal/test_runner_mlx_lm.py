"""mlx-lm's own kernels, from the installed package and unchanged, give their reference results."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import pytest

from minivllm.backend import mx, nn
from minivllm.metal.errors import KernelFault
from minivllm.metal.runner import Options, options
from tests.metal.runner_kernels import fresh_module

pytestmark = pytest.mark.usefixtures("compiler")

DTYPES = [mx.float32, mx.bfloat16]


@cache
def kernels() -> ModuleType:
    return fresh_module("mlx_lm.kernels")


def normal(*shape: int, seed: int = 0, dtype: mx.Dtype = mx.float32) -> mx.array:
    return mx.random.normal(shape, key=mx.random.key(seed)).astype(dtype)


def close(found: mx.array, expected: mx.array, dtype: mx.Dtype = mx.float32) -> bool:
    tolerance = {mx.float32: 2e-5, mx.bfloat16: 2e-2}[dtype]
    found, expected = found.astype(mx.float32), expected.astype(mx.float32)
    return bool(mx.allclose(found, expected, rtol=tolerance, atol=tolerance))


def test_expert_routing() -> None:
    logits, bias = normal(5, 40), normal(40, seed=1)
    experts, weights = kernels().expert_routing(logits, bias, top_k=4, multiplier=0.7, score_eps=1e-6, route_scale=2.0)
    scores = mx.sigmoid(logits * 0.7)
    expected = mx.argsort(-(scores + bias), axis=-1)[:, :4]
    chosen = mx.take_along_axis(scores, expected, axis=-1)
    assert mx.array_equal(experts, expected.astype(mx.uint32))
    assert close(weights, chosen / (chosen.sum(-1, keepdims=True) + 1e-6) * 2.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_norm_add_norm_with_and_without_the_next_norm(dtype: mx.Dtype) -> None:
    branch, stream = normal(3, 512, dtype=dtype), normal(3, 512, seed=1)
    alpha, beta, weight = normal(512, seed=2), normal(512, seed=3), normal(512, seed=4)
    norm = nn.RMSNorm(512, eps=1e-5)
    norm.weight = normal(512, seed=5)
    scaled = (weight.astype(dtype).astype(mx.float32) * branch.astype(mx.float32)).astype(dtype).astype(mx.float32)
    expected = alpha * stream + beta * mx.fast.rms_norm(scaled, None, 1e-6).astype(dtype).astype(mx.float32)
    arguments = {"alpha": alpha, "beta": beta, "post_weight": weight, "post_eps": 1e-6}
    new_stream, normed = kernels().norm_add_norm(branch, stream, **arguments, next_norm=norm)
    assert close(new_stream, expected, dtype)
    assert close(normed, mx.fast.rms_norm(expected, norm.weight, 1e-5), dtype)
    alone, nothing = kernels().norm_add_norm(branch, stream, **arguments, next_norm=None)
    assert mx.array_equal(alone, new_stream)
    assert nothing is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_pre_norm(dtype: mx.Dtype) -> None:
    norm = nn.RMSNorm(256, eps=1e-5)
    norm.weight = normal(256, seed=1)
    stream = normal(4, 256)
    assert close(kernels().pre_norm(stream, norm, dtype=dtype), norm(stream), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_post_expert_norm_combine(dtype: mx.Dtype) -> None:
    experts, weights, norm_weight = normal(3, 2, 512, dtype=dtype), normal(3, 2, seed=1), normal(512, seed=2)
    found = kernels().post_expert_norm_combine(experts, weights, norm_weight=norm_weight, eps=1e-5)
    normed = mx.fast.rms_norm(experts.astype(mx.float32) * norm_weight, None, 1e-5)
    assert close(found, (normed * weights[..., None]).sum(-2), dtype)


def qkv_reference(qkvg: mx.array, heads: int, kv_heads: int, head_size: int) -> tuple[mx.array, mx.array]:
    parts = qkvg.astype(mx.float32).reshape(*qkvg.shape[:-1], -1, head_size)
    normed = mx.fast.rms_norm(parts, None, 1e-5)
    return normed[..., :heads, :] * 0.5, normed[..., heads : heads + kv_heads, :]


@pytest.mark.parametrize("dtype", DTYPES)
def test_qk_norm(dtype: mx.Dtype) -> None:
    qkvg = normal(2, 3, 2 * (4 + 2) * 48, dtype=dtype)
    found = kernels().qk_norm(qkvg, n_heads=4, n_kv_heads=2, head_dim=48, eps=1e-5, query_scale=0.5)
    for one, expected in zip(found, qkv_reference(qkvg, 4, 2, 48), strict=True):
        assert close(one, expected, dtype)


@pytest.mark.parametrize("offset", [5, (3, 9)])
def test_qk_norm_rope(offset: int | tuple[int, int]) -> None:
    qkvg = normal(2, 3, 2 * (4 + 2) * 64)
    offsets = mx.array(offset) if isinstance(offset, tuple) else offset
    found = kernels().qk_norm_rope(
        qkvg, n_heads=4, n_kv_heads=2, head_dim=64, eps=1e-5, query_scale=0.5, rope_base=1e4, offset=offsets
    )
    for one, plain in zip(found, qkv_reference(qkvg, 4, 2, 64), strict=True):
        heads_first = plain.swapaxes(1, 2)
        rotated = mx.fast.rope(heads_first, 64, traditional=True, base=1e4, scale=1.0, offset=offsets)
        assert close(one, rotated.swapaxes(1, 2))


def test_rms_norm_sigmoid_gate_of_strided_arrays() -> None:
    x, gate = normal(2, 5, 3, 40).swapaxes(1, 2), normal(2, 5, 120, seed=1)
    expected = mx.fast.rms_norm(x, None, 1e-5).swapaxes(1, 2).reshape(2, 5, 120) * mx.sigmoid(gate)
    assert close(kernels().rms_norm_sigmoid_gate(x, gate, eps=1e-5), expected)


@pytest.mark.parametrize("has_vector_gate", [False, True])
@pytest.mark.parametrize("head_size", [64, 128])
def test_gated_delta_steps(has_vector_gate: bool, head_size: int) -> None:
    module = fresh_module("mlx_lm.models.gated_delta")
    q, k = normal(1, 3, 2, head_size) / 8, normal(1, 3, 2, head_size, seed=1) / 8
    v, beta = normal(1, 3, 4, 8, seed=2), mx.sigmoid(normal(1, 3, 4, seed=3))
    gate = mx.sigmoid(normal(*((1, 3, 4, head_size) if has_vector_gate else (1, 3, 4)), seed=4))
    state = normal(1, 4, 8, head_size, seed=5)
    expected = module.gated_delta_ops(q, k, v, gate, beta, state)
    for one, reference in zip(module.gated_delta_kernel(q, k, v, gate, beta, state), expected, strict=True):
        assert close(one, reference)


def test_the_state_space_step() -> None:
    module = fresh_module("mlx_lm.models.ssm")
    arguments = {
        "hidden_states": normal(2, 1, 4, 8),
        "A_log": mx.abs(normal(4, seed=1)),
        "B": normal(2, 1, 2, 32, seed=2),
        "C": normal(2, 1, 2, 32, seed=3),
        "D": normal(4, seed=4),
        "dt": normal(2, 1, 4, seed=5),
        "dt_bias": normal(4, seed=6),
        "state": normal(2, 4, 8, 32, seed=7),
        "time_step_limit": (0.001, 100.0),
    }
    found = module.ssm_update_kernel(**arguments)
    expected = module.ssm_attn(arguments.pop("hidden_states"), **arguments)
    for one, reference in zip(found, expected, strict=True):
        assert close(one, reference)


def test_the_wkv7_step() -> None:
    module = fresh_module("mlx_lm.models.rwkv7")
    r, w, k, v, a, b = (normal(1, 3, 2, 32, seed=seed) / 4 for seed in range(6))
    state = normal(1, 2, 32, 32, seed=6)
    y, new_state = module.wkv7_kernel(r, w, k, v, a, b, state)
    for t in range(3):
        step, state = module._wkv7_step_ops(*(x[:, t] for x in (r, w, k, v, a, b)), state)
        assert close(y[:, t], step[..., 0])
    assert close(new_state, state)


def test_the_ternary_matrix_product() -> None:
    module = fresh_module("mlx_lm.models.bitlinear_layers")
    layer = module.BitLinear(256, 16, bias=False)
    layer.weight = mx.random.randint(0, 256, (4, 256), key=mx.random.key(1)).astype(mx.uint8)
    layer.weight_scale = mx.array([0.5])
    x = normal(3, 256)
    weight = mx.concatenate([((layer.weight >> shift) & 3).astype(mx.float32) - 1 for shift in (0, 2, 4, 6)])
    assert close(layer.execute_matmul_kernel(x, layer.weight), x @ weight.T * 0.5)


def test_the_sinkhorn_iteration() -> None:
    module = fresh_module("mlx_lm.models.deepseek_v41")
    comb, eps = mx.abs(normal(5, 4, 4)) + 0.1, mx.array([1e-6])
    (found,) = module._sinkhorn_kernel(
        inputs=[comb, eps],
        template=[("HC", 4), ("ITERS", 3)],
        grid=(5, 1, 1),
        threadgroup=(5, 1, 1),
        output_shapes=[comb.shape],
        output_dtypes=[mx.float32],
    )
    assert close(found, module._sinkhorn(comb, iters=3, eps=eps))


def kl_divergence(module: ModuleType, q: mx.array, p: mx.array) -> mx.array:
    (found,) = module._kl_forward_kernel(
        inputs=[q, p],
        output_shapes=[q.shape[:-1]],
        output_dtypes=[q.dtype],
        template=[("T", q.dtype), ("V", q.shape[-1])],
        grid=(1024, q.shape[0], 1),
        threadgroup=(1024, 1, 1),
    )
    return found


def test_the_loss_kernel_gives_its_result_but_has_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlx_lm.utils.can_run_metal", lambda: True)
    module = fresh_module("mlx_lm.tuner.losses")
    q, p = normal(2, 5000), normal(2, 5000, seed=1)
    with options(Options(check=False)):
        found = kl_divergence(module, q, p)
    log_q, log_p = (x - mx.logsumexp(x, axis=-1, keepdims=True) for x in (q, p))
    assert close(found, (mx.exp(log_p) * (log_p - log_q)).sum(-1))
    with pytest.raises(
        KernelFault, match=r"`shared\[simd_group_id.*race: .*`max_[qp] = shared\[simd_lane_id"
    ) as caught:
        kl_divergence(module, q, p)
    assert caught.value.kind == "race"
