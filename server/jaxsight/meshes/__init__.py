"""Several devices: meshes, shardings, and what communicates.

Sharding concerns every floor of the house; who changes it opens these:

* here: types that are divided over axes (`divided.py`), shardings by the names of parameters, and
  JAX's own objects (`compat/`: meshes and the mesh of the context, shardings as data, `shard_map`,
  the collectives of a jaxpr);
* `wire/meshes.py`: meshes and shardings as data, between processes;
* `examples/notation/shapes.py` and `tracer/calls/inputs.py`: meshes of example inputs;
* `compiler/hlo/distributed/`: what the partitioner made of a program;
* `targets/communication.py`: how long its collectives take on a device's links;
* `figures/distributed/`, `features/distributed/`: the words and pictures;
* the rules JX411, JX424 and JX427.

This package must never need the devices of a mesh: they may be simulated, or only described.
"""
