"""Templates of conditionals."""

from __future__ import annotations

from jaxsight.dataset.generating.elementwise import binary, chain, compare, tree
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import leave, reduced
from jaxsight.dataset.generating.types import INTEGERS, Value, jnp_dtype, operand
from jaxsight.dataset.generating.vocabulary import DATA
from jaxsight.dataset.generating.writer import Writer

PRODUCT_LEVEL = 70


def branches(w: Writer, x: Value, others: list[Value], count: int) -> list[str]:
    """Write functions of the same type of result, and return their names."""
    names = []
    arguments = [x, *others]
    pool = "grow shrink damp mix fold relax warp blend"
    for _ in range(count):
        name = w.name(pool)
        names.append(name)
        locals_ = [
            value.named(part) for value, part in zip(arguments, ("v", "u", "t"), strict=False)
        ]
        head = f"{name}({', '.join(value.text for value in locals_)})"
        with w.nested(head):
            value = tree(w, locals_, w.between(1, 2))
            value = chain(w, value, w.between(0, 2))
            if value.shape != x.shape or x.dtype != value.dtype or value.text in ("u", "t"):
                value = binary(w, locals_[0], w.short(value, "part", 30))
            value = calm(w, value)
            w.line(f"return {w.hoisted(value.text)}")
    return names


@template("branch", "conditionals", 3)
def branch(w: Writer) -> None:
    """Write `lax.cond` or `lax.switch` over functions."""
    dtype = w.floating()
    shape = w.shape(0, 3, 24)
    x = w.array(DATA, dtype, shape)
    others = [w.array("bias other reference", dtype, shape)] if w.chance(0.5) else []
    kind = w.pick(("cond", "switch", "cond_computed", "nested"))
    count = w.between(2, 4) if kind == "switch" else 2
    if kind == "switch":
        index = w.array("mode choice branch", w.index(), (), f"integers:{count}")
        condition = index.text
    elif kind == "cond":
        flag = w.array("flag is_training use_first", "bool", ())
        condition = flag.text
    else:
        condition = f"{x}.ravel()[0] > 0.0" if x.rank else f"{x} > 0.0"
    names = branches(w, x, others, count)
    operands = ", ".join(value.text for value in [x, *others])
    if kind == "switch":
        text = f"lax.switch({condition}, [{', '.join(names)}], {operands})"
    else:
        text = f"lax.cond({condition}, {', '.join(names)}, {operands})"
    y = w.let("branched", w.make(text, x, *others, low=-200, high=200))
    y = w.let("bounded", w.make(f"jnp.tanh({y})", y, low=-1, high=1)) if w.chance(0.4) else y
    if kind == "nested":
        more = branches(w, x, [], 2)
        text = f"lax.cond(jnp.sum({x}) > 0.0, {', '.join(more)}, {x})"
        text = text.replace(f"jnp.sum({x})", f"{x}.ravel()[-1]" if x.rank else x.text)
        y2 = w.let("second_branch", w.make(text, x, low=-200, high=200))
        y = w.let("sum_of_branches", w.make(f"{y} + {y2}", y, y2, low=-400, high=400))
    w.words += [kind.replace("_computed", ""), "_or_".join(names[:2])]
    w.title = (
        f"Choose between {' and '.join(names[:3])} with {'switch' if kind == 'switch' else 'cond'}"
    )
    y = w.let("result", binary(w, calm(w, y), x)) if w.chance(0.7) else y
    for other in others:
        y = w.let("with_bias mixed", binary(w, calm(w, w.short(y, "inner")), other))
    leave(w, calm(w, y), [x], 2)


@template("piecewise", "conditionals", 3)
def piecewise(w: Writer) -> None:
    """Write functions with several regimes, chosen elementwise."""
    dtype = w.floating()
    x = w.array("x t distance", dtype, w.shape(0, 4, 24))
    kind = w.pick(("where", "select", "nested", "piecewise", "select_n", "clip", "lax_select"))
    first = w.short(chain(w, x, w.between(1, 2)), "low_part", 34)
    second = w.short(chain(w, x, w.between(1, 2)), "middle_part", 34)
    third = w.short(chain(w, x, w.between(1, 2)), "high_part", 34)
    parts = (first, second, third)
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    lower, upper = round(x.low * w.pick((0.1, 0.2, 0.3)), 1), round(x.high * 0.2, 1)
    if kind == "where":
        mask = w.let("is_low mask", compare(w, x))
        text = f"jnp.where({mask}, {first}, {second})"
    elif kind == "nested":
        inner = w.let(
            "upper",
            w.make(f"jnp.where({x} < {upper}, {second}, {third})", second, x, low=low, high=high),
        )
        text = f"jnp.where({x} < {lower}, {first}, {inner})"
    elif kind == "select":
        conditions = w.let("conditions", Value(f"[{x} < {lower}, {x} < {upper}]", "", ()))
        choices = w.let("choices", Value(f"[{first}, {second}]", "", ()))
        text = f"jnp.select({conditions}, {choices}, default={third})"
    elif kind == "piecewise":
        names = branches(w, x, [], 2)
        text = f"jnp.piecewise({x}, [{x} < {lower}], [{', '.join(names)}])"
        low, high = -200, 200
    elif kind == "select_n":
        which = f"({x} > {lower}).astype(jnp.int32) + ({x} > {upper}).astype(jnp.int32)"
        which_name = w.let("regime", Value(which, "int32", x.shape))
        text = f"lax.select_n({which_name}, {first}, {second}, {third})"
    elif kind == "lax_select":
        text = f"lax.select({x} > {lower}, {first}, {second})"
    else:
        text = f"jnp.clip({first}, {lower}, {upper}) + {operand(second.text, PRODUCT_LEVEL)}"
        low, high = low + lower, high + upper
    y = w.let("selected", w.make(text, first, second, third, shape=x.shape, low=low, high=high))
    if kind == "piecewise":
        y = w.let("bounded", w.make(f"jnp.tanh({y})", y, low=-1, high=1))
    w.words += [kind if kind != "piecewise" else "pieces", w.pick(("regimes", "curve", "function"))]
    w.title = f"Evaluate a function with several regimes ({kind.replace('_', ' ')})"
    leave(w, y, [x], 3)


@template("masking", "conditionals")
def masking(w: Writer) -> None:
    """Write masks combined by logic, applied to values."""
    dtype = w.floating()
    shape = w.shape(1, 4, 16)
    x, y = w.array("values scores", dtype, shape), w.array("limits reference", dtype, shape)
    terms = [compare(w, x), compare(w, x, y), compare(w, y)]
    w.random.shuffle(terms)
    mask = w.let("is_valid", terms[0])
    if w.chance(0.4):
        given = w.array("mask keep", "bool", shape[-1:])
        mask = w.let("allowed", w.make(f"{mask} & {given}", mask))
    for term in terms[1 : w.between(1, 3)]:
        part = w.let("is_near is_large", term)
        text = w.pick(("{m} ^ {p}", "{m} | ~{p}", "{m} ^ {p}", "jnp.logical_or({m}, {p})"))
        mask = w.let("combined_mask", w.make(text.format(m=mask, p=part), mask))
    filled = w.short(chain(w, x, w.between(1, 2)), "mapped", 30)
    other = w.pick((y.text, "0.0", "-1.0", f"0.5 * {y}"))
    sources = (filled, y) if y.text in other else (filled,)
    ends = (min(filled.low, y.low), max(filled.high, y.high))
    text = f"jnp.where({mask}, {filled}, {other})"
    value = w.make(text, *sources, low=ends[0], high=ends[1])
    z = w.let("kept", value)
    if w.chance(0.4):
        total, names = reduced(w, z, -1)
        count = f"jnp.sum({mask}, axis=-1).astype({jnp_dtype(dtype)}) + 1.0"
        total = w.let(names, total)
        z = w.let("ratio", w.make(f"{total} / ({count})", total))
    w.words += ["masked", w.pick(("values", "mean", "scores")), w.pick(("", "by_limits"))]
    w.title = "Mask values by comparisons and combine the rest"
    leave(w, z, [x] if z.shape == x.shape else [], 3)


@template("integer cases", "conditionals")
def integer_cases(w: Writer) -> None:
    """Write choices by integers, as tables of cases."""
    dtype = w.dtype(*INTEGERS)
    shape = w.shape(1, 3, 24)
    codes = w.array("codes kinds states", dtype, shape, "integers:6")
    x = w.array("values payload", w.floating(), shape)
    kind = w.pick(("choose", "table", "chain", "clamp"))
    w.words += ["cases", kind, dtype]
    w.title = f"Choose values by {dtype} codes ({kind})"
    if kind == "choose":
        one, other = chain(w, x, 1), chain(w, x, 1)
        one, other = w.let("first_case", one), w.let("second_case", other)
        one = w.let("third_case", w.make(f"0.5 * {x}", x)) if one.text == other.text else one
        index = w.let("case", w.make(f"({codes} % 3).astype(jnp.int32)", codes, dtype="int32"))
        text = f'jnp.choose({index}, [{x}, {one}, {other}], mode="clip")'
        low, high = min(one.low, other.low, x.low), max(one.high, other.high, x.high)
        y = w.make(text, x, low=low, high=high)
    elif kind == "table":
        table = f"jnp.array([0.5, -1.0, 2.0, 0.1, 1.5, -0.5], {x}.dtype)"
        w.line(f"factors = {table}")
        y = w.make(f"{x} * factors[{codes}]", x, low=-9, high=9)
    elif kind == "chain":
        w.line(f"is_even = {codes} % 2 == 0")
        w.line(f"is_last = {codes} == 5")
        one = w.short(chain(w, x, 1), "even_part")
        y = w.make(
            f"jnp.where(is_even, {one}, jnp.where(is_last, -{x}, {x} * 2.0))",
            x,
            low=min(one.low, -9),
            high=max(one.high, 9),
        )
    else:
        text = f"lax.clamp(jnp.ones_like({codes}), {codes}, jnp.full_like({codes}, 4))"
        bounded = w.let("bounded", w.make(text, codes, low=1, high=4, is_exact=True))
        y = w.make(f"{x} * {bounded}.astype({x}.dtype)", x, low=-18, high=18)
    leave(w, w.let("chosen", y), [x], 4)
