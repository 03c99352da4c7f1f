"""The programs of `programs/`, with inputs of which the independent compile makes arguments.

`programs.md` names their sources. The same inputs, in the notation of example inputs, are in
`programs/pyproject.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Program:
    """A function of a file of `programs/`."""

    file: str
    function: str
    arguments: str
    """A Python expression in the file's module, where `A(dtype, *shape)` is an input."""

    @property
    def needs_eight(self) -> bool:
        """Whether the file asks for a mesh of all devices that is one of eight."""
        return self.file in _ALL_EIGHT

    @property
    def name(self) -> str:
        """The name in `[tool.jaxsight.examples]`."""
        return f"{Path(self.file).stem}:{self.function}"


_ALL_EIGHT = (
    "jax_tutorials/distributed_arrays.py",
    "flax/fsdp_and_optimizer.py",
    "flax/flax_on_pjit.py",
)


def _many(file: str, **functions: str) -> list[Program]:
    return [Program(file, name, arguments) for name, arguments in functions.items()]


_WEIGHTS = "[(A('f32',784,128),A('f32',128))]+[(A('f32',128,128),A('f32',128))]*4+[(A('f32',128,8),A('f32',8))]"
_NETWORK = f"{_WEIGHTS}, A('f32',32,784), A('f32',32,8)"
_TP = _NETWORK
_MLP = f"{_WEIGHTS}, (A('f32',32,784), A('f32',32,8))"
_PIPELINE = "A('f32',8,16,16), A('f32',8,16), A('f32',4,2,16)"
_LINE = "A('f32',16)"
_RING = ", ".join(["A('f32',2,1024,4,32)"] * 3)

_CHUNKS = (
    "A('f32',16,2,4,64,32), A('f32',16,2,4,64,32), A('f32',16,2,4,64,32), A('f32',16,2,4,64),"
    " A('f32',2,4,32,32)"
)
_WEIGHTED = "jax.random.key(0), {'w': A('f32',64,32), 'b': A('f32',32)}, A('f32',64)"

PROGRAMS = [
    *_many(
        "jax_tutorials/shard_map_matmul.py",
        matmul_basic="A('f32',8,16), A('f32',16,4)",
        matmul_reduce_scatter="A('f32',8,16), A('f32',16,4)",
        matmul_allgather="A('f32',64,32), A('f32',32,64)",
        matmul_allgather_overlapped="A('f32',64,32), A('f32',32,64)",
        matmul_psumscatter_overlapped="A('f32',64,32), A('f32',32,64)",
    ),
    *_many(
        "jax_tutorials/shard_map_collectives.py",
        sum_blocks=_LINE,
        sum_over_one_axis="A('f32',8,16)",
        sum_over_both_axes="A('f32',8,16)",
        gather_blocks=_LINE,
        scatter_sums=_LINE,
        permute_blocks=_LINE,
        transpose_blocks=_LINE,
        psum_by_ppermute=_LINE,
        mean_of_squares=_LINE,
    ),
    *_many(
        "jax_tutorials/shard_map_networks.py",
        gradient_dp=_NETWORK,
        gradient_fsdp=_NETWORK,
        gradient_tp=_TP,
        gradient_fsdp_tp=_NETWORK,
        pipeline=_PIPELINE,
        pipeline_gradient=_PIPELINE,
        mixture_of_experts="A('f32',128,16), A('f32',8,16,16), A('f32',16,8)",
        replicated_then_sharded="A('f32',64,32)",
    ),
    *_many(
        "jax_tutorials/distributed_arrays.py",
        matmul_blocks="A('f32',64,64), A('f32',64,64)",
        matmul_same_layout="A('f32',64,64), A('f32',64,64)",
        change_layout="A('f32',64,64)",
        gradfun_data=_MLP,
        gradfun_tensor=_MLP,
        random_numbers="jax.random.key(0), A('f32',4096)",
    ),
    *_many(
        "jax_tutorials/explicit_sharding.py",
        add_arrays="A('f32',4,8), A('f32',4,8)",
        contract="A('f32',16,32), A('f32',32,8)",
        scatter_contraction="A('f32',16,32), A('f32',32,8)",
        transpose_by_reshard="A('f32',16,32)",
        gather_rows="A('f32',64,32), A('i32',16)",
        mlp_gradient="A('f32',64,128), A('f32',128,64), A('f32',16,64)",
    ),
    *_many(
        "jax_tutorials/sharded_computation.py",
        f_contract="A('f32',32,16)",
        f_elementwise="A('f32',32)",
        layer="A('f32',32,4), A('f32',4,16), A('f32',16)",
        gathered="A('f32',64,8)",
        spmd_update="[(A('f32',8,784,128),A('f32',8,128)),(A('f32',8,784,10),A('f32',8,10))],"
        " A('f32',8,4,784), A('f32',8,4,10)",
    ),
    *_many(
        "jax_tutorials/libraries.py",
        equinox_step="model, jnp.zeros((32, 8)), jnp.zeros((32, 1))",
        optax_step="A('f32',64,128), A('f32',32,64)",
        clipped_gradient="A('f32',64,128), A('f32',32,64)",
    ),
    *_many(
        "flax/data_parallel_with_jit.py",
        train_step="model, optimizer, *jax.device_put((np.zeros((16,1)), np.zeros((16,1))), data_sharding)",
    ),
    *_many(
        "flax/fsdp_and_optimizer.py",
        create_model="mesh: mesh",
        train_step="model, optimizer, *jax.device_put((np.zeros((32,1)), np.zeros((32,1))),"
        " named_sharding('data'))",
    ),
    *_many(
        "flax/fsdp_and_optimizer.py",
        **{
            "MLP.__call__": "mesh: mesh; MLP(8, 32, 8, nnx.Rngs(0)),"
            " jax.device_put(np.zeros((32, 8)), named_sharding('data'))"
        },
    ),
    *_many(
        "flax/data_parallel_with_jit.py",
        **{
            "MLP.__call__": "MLP(1, 64, 1, rngs=nnx.Rngs(0)),"
            " jax.device_put(np.zeros((16, 1)), data_sharding)"
        },
    ),
    *_many(
        "flax/flax_gspmd.py",
        init_sharded_linear="mesh: auto_mesh; jax.random.key(0)",
    ),
    *_many(
        "flax/minigpt.py",
        **{
            "TransformerBlock.__call__": "TransformerBlock(32, 4, 64, rngs=nnx.Rngs(0)),"
            " jax.device_put(jnp.zeros((4, 16, 32)), P('batch'))",
            "TokenAndPositionEmbedding.__call__": "TokenAndPositionEmbedding(16, 64, 32,"
            " rngs=nnx.Rngs(0)), jax.device_put(jnp.zeros((4, 16), int), P('batch'))",
        },
    ),
    *_many(
        "flax/flax_on_pjit.py",
        train_step="initialized_state, x",
        apply_fn="initialized_state, x",
    ),
    *_many(
        "maxtext/shmap_collective_matmul.py",
        collective_matmul="A('bf16',2,512,1024), A('bf16',1024,16,64)",
    ),
    *_many("maxtext/non_spmd.py", example_step=""),
    *_many(
        "maxtext/run_gdn_cp.py",
        context_parallel=_CHUNKS,
        context_parallel_gradient=_CHUNKS,
    ),
    *_many(
        "ringattention/run_ring_attention.py",
        attention=_RING,
        attention_gradient=_RING,
        inference="A('f32',2,1,4,32), A('f32',2,1024,4,32), A('f32',2,1024,4,32), A('bool',2,1,1,1024)",
    ),
    *_many("pmpp/run_pmpp.py", smooth="A('f32',64,32,32)", laplacian="A('f32',64,64,64)"),
    *_many(
        "shardes/run_contraction.py",
        gather_weights=_WEIGHTED,
        sum_updates=_WEIGHTED,
        regenerate_noise=_WEIGHTED,
    ),
    *_many("tunix/run_llama.py", step="abstract, A('i32',8,64)", forward="abstract, A('i32',8,64)"),
    *_many(
        "excerpts/run_excerpts.py",
        combine_experts="A('f32',16,8,32), A('f32',8,32,64)",
        balance_experts="A('i32',8,16,2)",
        merge_attention="A('f32',64,16,32), A('f32',64,16), A('f32',64,16,32), A('f32',64,16)",
        fsdp_gradient="A('f32',64,128)",
    ),
    *_many(
        "excerpts/run_pencils.py",
        exchange_halo="A('f32',32,32,16)",
        turn_pencils="A('f32',32,32,32)",
    ),
    *_many("excerpts/run_local_reshape.py", add_noise="A('f32',16,32), A('f32',512)"),
]
