"""The devices of candidates: as many as their meshes need.

In the process that reduces, meshes have no devices, as one that uses any must not fork. A child
makes meshes of its first devices.
"""

from __future__ import annotations

import math
from dataclasses import replace

from jaxsight_repro.compat import configuration
from jaxsight_repro.compat.mesh_equations import concrete, mesh_axes
from jaxsight_repro.environment import ProgramEnvironment
from jaxsight_repro.reducing.equations.candidates import Candidate


def _count(candidate: Candidate) -> int:
    """Return how many devices the meshes of a candidate need: at least one."""
    return max((math.prod(m.values()) for m in mesh_axes(candidate.equations)), default=1)


def placed(candidate: Candidate) -> Candidate:
    """Return a candidate with meshes of devices, in a child, which gets as many as they need."""
    configuration.simulate_devices(_count(candidate))
    return replace(candidate, equations=tuple(map(concrete, candidate.equations)))


def environment_of(candidate: Candidate, environment: ProgramEnvironment) -> ProgramEnvironment:
    """Return what a candidate runs with, with as many devices as it needs."""
    options, variables = configuration.with_devices(
        environment.options, environment.variables, _count(candidate)
    )
    return replace(environment, options=options, variables=variables)
