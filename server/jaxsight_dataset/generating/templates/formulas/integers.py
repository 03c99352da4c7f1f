"""Templates of formulas of integers and their bits."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

INTEGERS = {
    "hash_words": (
        "Hash integers",
        """
        first = choose(words ^ (words >> 2), words * 31 + salt, (words ^ salt) * 5)
        second = choose(first ^ (first << 3), first + (first << 2), first * 33 ^ salt)
        choose(second ^ (second >> 1), second, second & 63)
        """,
    ),
    "divide_by_constant": (
        "Divide integers by multiplying and shifting",
        """
        scaled = words << between(6, 20) if WIDE_ENOUGH else words
        choose(
            lax.mulhi(scaled, jnp.full_like(words, FACTOR)),
            lax.mulhi(scaled, jnp.full_like(words, FACTOR)) + salt,
            words - lax.mulhi(scaled, jnp.full_like(words, FACTOR)),
        ) if WIDE_ENOUGH else choose(words // M + salt, (words + M // 2) // M, words - words // M)
        """,
    ),
    "shift_words": (
        "Shift integers by several positions",
        """
        choose(
            SHIFT(words, jnp.full_like(words, between(1, 4))),
            SHIFT(words, salt & 3) ^ words,
            SHIFT(words, jnp.full_like(words, between(1, 4))) + salt,
        )
        """,
    ),
    "rotate_bits": (
        "Rotate the bits of integers",
        """
        high = lax.shift_left(words, jnp.full_like(words, K))
        low = lax.shift_right_logical(words, jnp.full_like(words, WIDTH - K))
        choose(high | low, (high | low) ^ salt, (high | low) + words)
        """,
    ),
    "digits": (
        "Compute digits of integers",
        "choose(words // M % M, words % M, words // M + words % M, (words * 3 + 1) % M)",
    ),
    "parity": (
        "Count bits of integers",
        """
        choose(
            lax.population_count(words) & 1,
            lax.population_count(words ^ salt),
            lax.clz(words | 1),
        )
        """,
    ),
}


@template("integer arithmetic", "arithmetic", 9)
def NAME(words: INT[S], salt: INT[S], offsets: INT[S[1:]]):
    """TITLE."""
    S, NAME = shape(0, 4), choose(*INTEGERS, *["divide_by_constant"] * 5, "shift_words", "parity")
    TITLE, LINES = INTEGERS[NAME]
    WIDTH = 8 if "8" in INT else 16 if "16" in INT else 64 if "64" in INT else 32
    K, M = between(1, min(WIDTH, 32) - 4), choose(3, 5, 7, 10)
    SHIFT = choose("lax.shift_right_logical", "lax.shift_right_arithmetic", "lax.shift_left")
    WIDE_ENOUGH = INT in ("int32", "uint32", "int64")
    FACTOR = choose(715827883, 858993459, 613566757) << (32 if INT == "int64" else 0)
    y: INT[S] = formula(LINES)
    if chance(0.15):
        z: F[S] = number(y)
        return more(z, most=2)
    return more(y, most=2)
