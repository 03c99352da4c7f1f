"""Convolutions of cuDNN as convolutions of HLO, and calls for what cuDNN does to their results.

XLA's conversion to StableHLO keeps the configuration of a custom call, which says the rest, but not
the window and the dimensions that a call of cuDNN also has.
"""

from __future__ import annotations

import re

_CALL = re.compile(
    r"^(?P<head> *(?:ROOT )?)(?P<name>%[\w.-]+) = (?P<shapes>\((?P<shape>b?f\d+\S+), .*?\)) "
    r"custom-call\((?P<inputs>%[\w.-]+, %[\w.-]+)(?P<others>[^)]*)\), "
    r"(?P<window>(?:window=.*?, )?dim_labels=\w+->(?P<labels>\w+).*?), "
    r"(?P<target>custom_call_target=\"__cudnn\$conv(?:BiasActivation)?Forward\".*backend_config=\{)",
    re.MULTILINE,
)
"""A forward convolution: HLO writes the windows of backward ones in terms of the forward one."""


def separated(text: str) -> str:
    """Return a module's text, as XLA prints it, with convolutions apart from what follows them."""
    return _CALL.sub(_separated, text)


def _separated(call: re.Match[str]) -> str:
    head, name, shapes, shape, inputs, others, window, labels, target = call.groups()
    feature = labels.index("f")  # the axis of the bias, which the configuration has not
    return (
        f"{head.replace('ROOT ', '')}{name}.conv = {shape} convolution({inputs}), {window}\n"
        f'{head}{name} = {shapes} custom-call({name}.conv{others}), {target}"feature":{feature},'
    )
