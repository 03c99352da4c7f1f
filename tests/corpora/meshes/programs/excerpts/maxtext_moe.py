# Copyright 2023–2026 Google LLC
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#    https://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""Functions of maxtext/layers/moe.py: lines 329-381, 717-827."""

import functools
from typing import Any

import jax
import jax.numpy as jnp


def calculate_load_balance_updates(top_k_indices, num_experts, rate, axis_names=None):
  """Computes a bias adjustment update based on expert load.

  Used in DeepSeek V3: https://arxiv.org/html/2412.19437v1.
  Implementation reference: https://arxiv.org/pdf/2408.15664.

  Args:
      top_k_indices: Shape (batch, sequence, top_k).
      num_experts: Total number of experts.
      rate: The update rate.
      axis_names: Optional mesh axis names to reduce expert counts across.
        Defaults to None for backward compatibility. When provided, expert token
        counts are collectively reduced (psum) across these axes before
        computing the load balance updates.

  Returns:
      update: The value to add to the expert bias. Shape (num_experts,).
  """
  expert_counts = calculate_expert_counts(top_k_indices, num_experts, axis_names=axis_names)
  return load_balance_updates_from_counts(expert_counts, num_experts, rate)


def calculate_expert_counts(top_k_indices, num_experts, axis_names=None):
  """Counts the token assignments routed to each expert.

  Args:
      top_k_indices: Integer expert ids of any shape, e.g. (batch, sequence, top_k).
      num_experts: Total number of experts.
      axis_names: Optional mesh axis names to psum the counts across.

  Returns:
      int32 array of shape (num_experts,).
  """
  flat_indices = top_k_indices.ravel()
  # one_hot rather than bincount: bincount clips out-of-range values, so the -1
  # padding that forced routing uses would all be counted as expert 0.
  expert_counts = jnp.sum(jax.nn.one_hot(flat_indices, num_experts, dtype=jnp.int32), axis=0)
  if axis_names:
    expert_counts = jax.lax.psum(expert_counts, axis_names)
  return expert_counts


def load_balance_updates_from_counts(expert_counts, num_experts, rate):
  """Loss-free-balancing bias update, rate * sign(mean_load - load), from expert counts.

  Matches Megatron-LM `get_updated_expert_bias` when `expert_counts` covers the full global batch.
  Supports shape (..., num_experts), e.g. (num_experts,) or scanned (num_layers, num_experts).
  """
  total_tokens = jnp.sum(expert_counts, axis=-1, keepdims=True)
  average_load = total_tokens / num_experts
  direction = jnp.sign(average_load - expert_counts)
  output = direction * rate
  return output

def _all_gather_quantized_payload(
    x: jax.Array,
    axis_name: str | tuple[str, ...],
    *,
    axis: int,
    tiled: bool,
    method: str,
    qtype: jnp.dtype = jnp.float8_e5m2,
) -> jax.Array:
  """jax.lax.all_gather with a quantized wire payload; returns dequantized x.dtype.

  Args:
    x: Local shard to gather.
    axis_name: Mesh axis name(s) to gather over.
    axis: Axis of `x` to gather along.
    tiled: Same as `jax.lax.all_gather`.
    method: One of
      'fixed,<b>': static per-tensor scale b/qmax. The scale is identical on all
        shards, so only qvalues are gathered. For E5M2, |x| > ~b saturates and
        |x| < ~1.3e-10*b flushes to zero.
      'rowwise': dynamic per-token absmax scale over all leading axes (e.g.
        (batch, seq) for 3D, (tokens,) for 2D), matching the per-row gradient
        quantization in megablox `_bwd_quantize_gradient`. Scales differ per
        shard, so they are gathered alongside qvalues.
    qtype: Wire dtype of the quantized payload.

  Returns:
    The gathered, dequantized array in `x.dtype`.
  """
  static = method.startswith("fixed")
  if not static and method != "rowwise":
    raise ValueError(f"Unsupported method: {method!r}. Supported: 'rowwise', 'fixed,<bound>'.")
  if not static and axis in (x.ndim - 1, -1):
    raise ValueError(f"'rowwise' requires gathering along a leading axis, got axis={axis}.")

  x_f32 = x.astype(jnp.float32)
  if static:
    x_q = qpl.quantize(
        x_f32,
        qtype=qtype,
        channelwise_axes=(),
        calibration_method=method,
    )
    scale = x_q.scale
  else:  # dynamic rowwise with per-token scale
    x_q = qpl.quantize(
        x_f32,
        qtype=qtype,
        channelwise_axes=tuple(range(x.ndim - 1)),
        calibration_method="absmax",
    )
    scale = jax.lax.all_gather(x_q.scale, axis_name=axis_name, axis=axis, tiled=tiled)
  gathered_qvals = jax.lax.all_gather(x_q.qvalue, axis_name=axis_name, axis=axis, tiled=tiled)
  return (gathered_qvals.astype(jnp.float32) * scale).astype(x.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3, 4))
def _moe_combine_psum_scatter(
    x: jax.Array,
    axis_name: str | tuple[str, ...],
    scatter_dimension: int = 0,
    tiled: bool = True,
    bwd_method: str = "",
) -> jax.Array:
  """Evaluates psum_scatter in forward, and quantized All-Gather in backward.

  Shapes:
    Forward:
      x: [global_batch, sequence_length, hidden_dim], where global_batch is
        the full batch across all expert parallelism (EP) shards.
      Output: [local_batch, sequence_length, hidden_dim], scattered along
        scatter_dimension=0 (local_batch = global_batch // num_ep).
    Backward:
      grads: [local_batch, sequence_length, hidden_dim], incoming cotangent.
      Output: [global_batch, sequence_length, hidden_dim], gathered along
        scatter_dimension=0.
  """
  return jax.lax.psum_scatter(x, axis_name=axis_name, scatter_dimension=scatter_dimension, tiled=tiled)


def _moe_combine_psum_scatter_fwd(
    x: jax.Array,
    axis_name: str | tuple[str, ...],
    scatter_dimension: int = 0,
    tiled: bool = True,
    bwd_method: str = "",
) -> tuple[jax.Array, None]:
  """Custom VJP forward pass for _moe_combine_psum_scatter."""
  return _moe_combine_psum_scatter(x, axis_name, scatter_dimension, tiled, bwd_method), None


def _moe_combine_psum_scatter_bwd(
    axis_name: str | tuple[str, ...],
    scatter_dimension: int,
    tiled: bool,
    bwd_method: str,
    res: Any,
    grads: jax.Array,
) -> tuple[jax.Array]:
  """Custom VJP backward pass for _moe_combine_psum_scatter."""
  if not bwd_method:
    gathered_grads = jax.lax.all_gather(grads, axis_name=axis_name, tiled=tiled, axis=scatter_dimension)
    return (gathered_grads,)

  gathered_grads = _all_gather_quantized_payload(grads, axis_name, axis=scatter_dimension, tiled=tiled, method=bwd_method)
  return (gathered_grads,)


_moe_combine_psum_scatter.defvjp(_moe_combine_psum_scatter_fwd, _moe_combine_psum_scatter_bwd)


