"""Count which primitives, dtypes, ranks and structures occur in programs of the generator.

    python -m tests.jaxsight_dataset.coverage 10000

prints those public primitives that occur in fewer than 20 of 10,000 programs, and how many
programs have a structure of their own.
"""

from __future__ import annotations

import sys
from collections import Counter

import jax

from jaxsight_dataset.generating import generate
from jaxsight_dataset.program import leaves
from jaxsight_dataset.spec import Spec
from tests.jaxsight_dataset.programs import primitives, structure, traced

_NAMES = """
abs acos acosh add all_gather all_to_all argmax argmin asin asinh atan atan2 atanh axis_index
bessel_i0e bessel_i1e bitcast_convert_type broadcast_in_dim cbrt ceil cholesky cholesky_update
clamp clz complex composite concatenate cond conj conv_general_dilated convert_element_type copy
cos cosh cumlogsumexp cummax cummin cumprod cumsum custom_linear_solve dce_sink device_put digamma
div dot_general dynamic_slice dynamic_update_slice eig eigh empty eq erf erf_inv erfc exp exp2
expm1 fft floor gather ge gt hessenberg householder_product igamma igamma_grad_a igammac imag
integer_pow iota is_finite jit le lgamma log log1p logistic lt lu lu_pivots_to_permutation max min
mul mulhi ne neg nextafter optimization_barrier ormqr pad pmax pmin polygamma population_count pow
ppermute psum pure_callback qr ragged_dot_general real reduce reduce_and reduce_max reduce_min
reduce_or reduce_precision reduce_prod reduce_sum reduce_window reduce_xor rem reshape rev
rng_bit_generator round rsqrt scan scatter scatter-add scatter-max scatter-min scatter-mul
scatter-sub schur select_n shard_map shift_left shift_right_arithmetic shift_right_logical sign
sin sinh slice sort split sqrt square squeeze stop_gradient sub svd symmetric_product tan tanh
tile top_k transpose triangular_solve tridiagonal tridiagonal_solve zeta
"""
PUBLIC = tuple(_NAMES.split())
"""Primitives with a public function of the same name that the tested versions of JAX lower on CPU.

Those of the network, of tokens and `rng_uniform`, which is not deterministic, are missing.
"""


def main(count: int) -> None:
    """Print the coverage of the first programs of seed 0."""
    seen: Counter[str] = Counter()
    dtypes: Counter[str] = Counter()
    ranks: Counter[int] = Counter()
    structures: Counter[object] = Counter()
    failures: Counter[str] = Counter()
    for number in range(count):
        program = generate(Spec(), number)
        arrays = [leaf for item in program.arguments.values() for leaf in leaves(item)]
        dtypes.update({leaf.dtype for leaf in arrays})
        ranks.update({len(leaf.shape) for leaf in arrays})
        try:
            jaxpr = traced(program).jaxpr
        except Exception as error:  # noqa: BLE001 - any failure of a program is what is counted
            failures[f"{program.template}: {type(error).__name__}: {error}"[:200]] += 1
            continue
        seen.update(set(primitives(jaxpr)))
        structures[structure(jaxpr)] += 1
    least = 20 * count / 10_000
    rare = {name: seen[name] for name in PUBLIC if seen[name] < least}
    print(f"{count} programs, {sum(failures.values())} fail: {dict(failures)}")
    print(f"{len(structures)} structures ({len(structures) / count:.1%})")
    print(f"{1 - len(rare) / len(PUBLIC):.1%} of {len(PUBLIC)} primitives occur; rare: {rare}")
    rarest = {name: seen[name] for name in sorted(PUBLIC, key=lambda name: seen[name])[:30]}
    print(f"rarest: {rarest}")
    print(f"dtypes: {dict(dtypes)}\nranks: {dict(sorted(ranks.items()))}")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", 8)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
