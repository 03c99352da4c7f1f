# MIT License, licenses/jaxdecomp.txt. Copyright (c) the jaxDecomp authors
"""Functions of jaxDecomp: lines 109-197 of src/jaxdecomp/_src/jax/halo.py, 56-118 of transpose.py."""

from types import SimpleNamespace

import jax
from jax import lax

Array = jax.Array
HaloExtentType = Periodicity = tuple
jaxdecomp = SimpleNamespace(config=SimpleNamespace(transpose_axis_contiguous=True))


def _halo_pencils(
    operand: Array,
    halo_extents: HaloExtentType,
    halo_periods: Periodicity,
    x_axis_name: str,
    y_axis_name: str,
) -> Array:
    """
    Halo exchange for pencil decomposition.

    Parameters
    ----------
    operand : Array
        Input array.
    halo_extents : Tuple[int, int]
        Extents of the halo in X and Y directions.
    halo_periods : Tuple[bool, bool]
        Periodicity in X and Y directions.
    x_axis_name : str
        The axis name for the X axis.
    y_axis_name : str
        The axis name for the Y axis.

    Returns
    -------
    Array
        The array with halo exchange applied.
    """
    y_size = lax.psum(1, y_axis_name)
    z_size = lax.psum(1, x_axis_name)

    halo_x, halo_y = halo_extents
    periodic_x, periodic_y = halo_periods

    upper_halo = operand[halo_x : halo_x + halo_x]
    lower_halo = operand[-(halo_x + halo_x) : -halo_x]

    right_halo = operand[:, halo_y : halo_y + halo_y]
    left_halo = operand[:, -(halo_y + halo_y) : -halo_y]

    upper_right_corner = operand[halo_x : halo_x + halo_x, halo_y : halo_y + halo_y]
    upper_left_corner = operand[halo_x : halo_x + halo_x, -(halo_y + halo_y) : -halo_y]
    lower_right_corner = operand[-(halo_x + halo_x) : -halo_x, halo_y : halo_y + halo_y]
    lower_left_corner = operand[-(halo_x + halo_x) : -halo_x, -(halo_y + halo_y) : -halo_y]

    permutations_x = slice(None, None) if periodic_x else slice(None, -1)
    permutations_y = slice(None, None) if periodic_y else slice(None, -1)
    reverse_indexing_z = [((j + 1) % z_size, j) for j in range(z_size)][permutations_x]
    forward_indexing_z = [(j, (j + 1) % z_size) for j in range(z_size)][permutations_x]
    reverse_indexing_y = [((j + 1) % y_size, j) for j in range(y_size)][permutations_y]
    forward_indexing_y = [(j, (j + 1) % y_size) for j in range(y_size)][permutations_y]

    exchanged_upper_halo = lax.ppermute(upper_halo, axis_name=x_axis_name, perm=reverse_indexing_z)
    exchanged_lower_halo = lax.ppermute(lower_halo, axis_name=x_axis_name, perm=forward_indexing_z)
    exchanged_right_halo = lax.ppermute(right_halo, axis_name=y_axis_name, perm=reverse_indexing_y)
    exchanged_left_halo = lax.ppermute(left_halo, axis_name=y_axis_name, perm=forward_indexing_y)

    exchanged_upper_right_corner = lax.ppermute(
        lax.ppermute(upper_right_corner, axis_name=x_axis_name, perm=reverse_indexing_z),
        axis_name=y_axis_name,
        perm=reverse_indexing_y,
    )
    exchanged_upper_left_corner = lax.ppermute(
        lax.ppermute(upper_left_corner, axis_name=x_axis_name, perm=reverse_indexing_z),
        axis_name=y_axis_name,
        perm=forward_indexing_y,
    )
    exchanged_lower_right_corner = lax.ppermute(
        lax.ppermute(lower_right_corner, axis_name=x_axis_name, perm=forward_indexing_z),
        axis_name=y_axis_name,
        perm=reverse_indexing_y,
    )
    exchanged_lower_left_corner = lax.ppermute(
        lax.ppermute(lower_left_corner, axis_name=x_axis_name, perm=forward_indexing_z),
        axis_name=y_axis_name,
        perm=forward_indexing_y,
    )

    operand = operand.at[:halo_x].set(exchanged_lower_halo)
    operand = operand.at[-halo_x:].set(exchanged_upper_halo)
    operand = operand.at[:, :halo_y].set(exchanged_left_halo)
    operand = operand.at[:, -halo_y:].set(exchanged_right_halo)

    operand = operand.at[:halo_x, :halo_y].set(exchanged_lower_left_corner)
    operand = operand.at[:halo_x, -halo_y:].set(exchanged_lower_right_corner)
    operand = operand.at[-halo_x:, :halo_y].set(exchanged_upper_left_corner)
    operand = operand.at[-halo_x:, -halo_y:].set(exchanged_upper_right_corner)

    return operand


def per_shard_impl(a: Array, kind: str, x_axis_name: str, y_axis_name: str) -> Array:
    """
    Per-shard implementation method for the transposition primitive.

    Parameters
    ----------
    x : ArrayLike
        Input array.
    kind : str
        Kind of transposition ('x_y', 'y_z', 'z_y', 'y_x').
    pdims : tuple[int]
        Partition dimensions.
    global_shape : tuple[int]
        Global shape of the input array.

    Returns
    -------
    Object
        Result of binding the inner primitive with input arguments.
    """

    def _impl(a):
        if jaxdecomp.config.transpose_axis_contiguous:
            match kind:
                case 'x_y':
                    return lax.all_to_all(a, y_axis_name, 2, 1, tiled=True).transpose([2, 0, 1])
                case 'y_z':
                    return lax.all_to_all(a, x_axis_name, 2, 1, tiled=True).transpose([2, 0, 1])
                case 'z_y':
                    return lax.all_to_all(a, x_axis_name, 2, 0, tiled=True).transpose([1, 2, 0])
                case 'y_x':
                    return lax.all_to_all(a, y_axis_name, 2, 0, tiled=True).transpose([1, 2, 0])
                case 'x_z':
                    return lax.all_to_all(a, x_axis_name, 2, 0, tiled=True).transpose([1, 2, 0])
                case 'z_x':
                    return lax.all_to_all(a, x_axis_name, 2, 1, tiled=True).transpose([2, 0, 1])
                case _:
                    raise ValueError('Invalid kind')
        else:
            match kind:
                case 'x_y':
                    return lax.all_to_all(a, y_axis_name, 2, 1, tiled=True)
                case 'y_z':
                    return lax.all_to_all(a, x_axis_name, 1, 0, tiled=True)
                case 'z_y':
                    return lax.all_to_all(a, x_axis_name, 0, 1, tiled=True)
                case 'y_x':
                    return lax.all_to_all(a, y_axis_name, 1, 2, tiled=True)
                case 'x_z':
                    return lax.all_to_all(a, x_axis_name, 2, 0, tiled=True)
                case 'z_x':
                    return lax.all_to_all(a, x_axis_name, 0, 2, tiled=True)
                case _:
                    raise ValueError('Invalid kind')

    if a.ndim == 3:
        return _impl(a)
    if a.ndim == 4:
        return jax.vmap(_impl)(a)
    else:
        raise ValueError(f'Unsupported input shape {a.shape}')
