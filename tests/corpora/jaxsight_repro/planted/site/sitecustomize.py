"""Plants a fault into JAX when it is imported; this folder is on PYTHONPATH.

PLANTED is JSON: `fault` (a key of `_LOWERED`, or `trace`), `primitive`, `dtype` and `rank` of its
first operand, and `after`: a primitive that must have been lowered before in the same module.
"""

import importlib.machinery
import json
import os
import signal
import sys
import time

_PLANTED = json.loads(os.environ.get("PLANTED", "null"))
_MESSAGE = "planted in {primitive}"


class _Finder:
    """Finds `jax`, and plants once it is imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "jax":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            execute = spec.loader.exec_module

            def executed(module):
                execute(module)
                _plant(**_PLANTED)

            spec.loader.exec_module = executed
        return spec


def _matches(avals, dtype, rank):
    first = avals[0] if avals else None
    return str(getattr(first, "dtype", "")) == dtype and len(getattr(first, "shape", ())) == rank


def _plant(fault, primitive, dtype, rank, after=""):
    from jax._src.interpreters import mlir

    tables = [mlir._lowerings, *mlir._platform_specific_lowerings.values()]
    known = {each.name: each for table in tables for each in table}
    planted = known[primitive]
    if fault == "trace":
        evaluate = planted.abstract_eval

        def evaluated(*avals, **params):
            if _matches(avals, dtype, rank):
                raise ValueError(_MESSAGE.format(primitive=primitive))
            return evaluate(*avals, **params)

        planted.abstract_eval = evaluated
        return
    modules = []  # kept alive, so that identities are not used again

    def seen(rule):
        def lower(ctx, *args, **params):
            modules.append(ctx.module_context)
            return rule(ctx, *args, **params)

        return lower

    def wrong(rule):
        inside = []

        def lower(ctx, *args, **params):
            results = rule(ctx, *args, **params)
            if inside or not _matches(ctx.avals_in, dtype, rank):
                return results
            if after and not any(module is ctx.module_context for module in modules):
                return results
            inside.append(True)
            try:
                return _LOWERED[fault](ctx, primitive, results)
            finally:
                inside.pop()

        return lower

    for table in tables:
        for each, wrap in ((known.get(after), seen), (planted, wrong)):
            if each in table:
                entry = table[each]
                table[each] = type(entry)(wrap(entry.rule), entry.inline)


def _raise(ctx, primitive, results):
    raise NotImplementedError(_MESSAGE.format(primitive=primitive))


def _segfault(ctx, primitive, results):
    os.kill(os.getpid(), signal.SIGSEGV)


def _abort(ctx, primitive, results):
    os.kill(os.getpid(), signal.SIGABRT)


def _sleep(ctx, primitive, results):
    time.sleep(3600)


def _changed(ctx, results, change):
    """The results after a function of the first of them."""
    import jax
    from jax._src.interpreters import mlir

    first, *rest = [results] if not isinstance(results, (list, tuple)) else list(results)
    if not hasattr(first, "type"):
        first = first[0]
    avals = list(ctx.avals_out[:1])
    changing = ctx.replace(avals_in=avals, avals_out=avals, tokens_out=None)
    with jax.disable_jit(False):
        (made,) = mlir.lower_fun(change, multiple_results=False)(changing, first)
    return [made, *rest]


def _wrong(ctx, primitive, results):
    name = str(ctx.module_context.module.operation.attributes["sym_name"]).strip('"')
    if name == f"jit_{primitive}":
        return results  # it is executed by itself
    return _changed(ctx, results, lambda x: x * 2 + 1)


def _nan(ctx, primitive, results):
    return _changed(ctx, results, lambda x: x + (x - x) / (x - x))


def _allocate(ctx, primitive, results):
    def change(x):
        from jax import lax

        many = lax.sort(lax.bitcast_convert_type(lax.iota("uint32", 1 << 22), "float32"))
        last = lax.index_in_dim(many, 0, keepdims=False)
        return x + lax.convert_element_type(last, x.dtype)

    return _changed(ctx, results, change)


def _segfault_when_run(ctx, primitive, results):
    def change(x):
        import jax

        def kill(x):
            os.kill(os.getpid(), signal.SIGSEGV)
            return x

        return jax.pure_callback(kill, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    return _changed(ctx, results, change)


_LOWERED = {
    "lower": _raise,
    "crash": _segfault,
    "abort": _abort,
    "sleep": _sleep,
    "wrong": _wrong,
    "nan": _nan,
    "allocate": _allocate,
    "crash-run": _segfault_when_run,
}

if _PLANTED:
    sys.meta_path.insert(0, _Finder())
