"""Words for the names of functions and their parameters, by what programs are about."""

from __future__ import annotations

from jaxsight.dataset.generating.writer import Writer

THEMES = (
    ("signal", "signal noise gain offset", "mix_signals", "Mix signals"),
    ("physics", "mass velocity height drag", "energy_terms", "Compute terms of an energy"),
    ("market", "price quantity discount tax", "revenue", "Compute a revenue"),
    ("geometry", "x y z radius", "distance_terms", "Compute terms of a distance"),
    ("weather", "temperature pressure humidity wind", "comfort_index", "Compute a comfort index"),
    ("ecology", "prey predators food growth", "population_change", "Compute a population change"),
    ("images", "image background mask_level contrast", "blend_images", "Blend images"),
    ("control", "state target control error", "control_signal", "Compute a control signal"),
    ("chemistry", "concentration rate catalyst energy", "reaction_rate", "Compute a reaction rate"),
    ("learning", "prediction label margin weight", "loss_terms", "Compute terms of a loss"),
    ("finance", "spot strike volatility maturity", "option_value", "Compute an option's value"),
    ("audio", "waveform envelope carrier depth", "modulate", "Modulate a waveform"),
    ("plain", "a b c d", "combine", "Combine arrays"),
    ("plain2", "x y z w", "evaluate", "Evaluate an expression"),
    ("plain3", "left right bias scale", "merge", "Merge arrays"),
    ("space", "position momentum charge field", "force_terms", "Compute terms of a force"),
)

INTEGER_THEMES = (
    ("hash", "words seed salt rounds", "mix_bits", "Mix the bits of words"),
    ("colors", "pixels palette_index alpha shade", "pack_colors", "Pack colors into integers"),
    ("counters", "counts limits offsets steps", "wrap_counters", "Wrap counters"),
    ("flags", "flags mask toggles bits", "toggle_flags", "Toggle flags"),
    ("ids", "ids buckets shards keys", "bucket_ids", "Map ids to buckets"),
    ("codes", "codes digits shifts base", "encode_codes", "Encode digits"),
    ("votes", "votes ballots quota seats", "tally_votes", "Tally votes"),
)

ADVERBS = ("smoothly", "elementwise", "jointly", "twice", "in_steps", "pairwise", "by_parts")


def theme(w: Writer, is_integer: bool = False) -> list[str]:
    """Choose what a program is about: set its name and title, and return names of parameters."""
    _, names, function, title = w.pick(INTEGER_THEMES if is_integer else THEMES)
    w.words.append(function)
    w.title = title
    return names.split()


DATA = "x features inputs data values batch_values samples"
WEIGHTS = "weights kernel w projection matrix"
