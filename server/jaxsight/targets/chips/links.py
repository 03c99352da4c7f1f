"""Links between devices, and to their host: how many bytes a device can send in a second.

Rates are those of all links of a device in one direction; it can receive as much meanwhile.

Sources:
* [sheet]: NVIDIA's data sheet of the product, which has the sum of both directions of NVLink, or
  the generation of PCIe.
* [pcie]: 16 lanes of PCIe: 15.75, 31.5 and 63 GB/s for generations 3, 4 and 5 (PCI-SIG: 8, 16 and
  32 GT/s, 128b/130b encoding).
* [cloud]: the page of each version in Google Cloud's TPU documentation, "Bidirectional inter-chip
  interconnect (ICI) bandwidth (per chip)" and the shape of its slices.
* [c2c]: NVLink-C2C between a Grace CPU and its GPUs has 900 GB/s in both directions (NVIDIA Grace
  Hopper and GB200 data sheets); that two GPUs may share it is left out, so this is an upper limit.
* [book]: "How to Scale Your Model", jax-ml.github.io/scaling-book, "How to Think About TPUs": PCIe
  of TPU v4 has 16 GB/s each way, of v6e 32 GB/s, "about 2x higher than v5".

Chips without an entry have no figure: on TPU v4 and TPU7x two devices of JAX share the links of a
chip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxsight.targets.chips.gpus import GIGA


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a device."""

    bandwidth: float
    """Bytes per second in one direction, of all links of a device."""
    domain: int
    """The number of devices that are connected like this; 0 for all of a slice of TPUs."""
    name: str = "NVLink"
    dimensions: int = 0
    """Of the torus of TPUs."""

    def rate(self, topology: str = "") -> float:
        """Return the bandwidth of a device that has the most neighbours in a slice of TPUs.

        A side of 2 devices has one link between them, a longer one two links for each device;
        sides whose ends are connected have no more.

        Args:
            topology: the slice (`4x4`); empty for one that uses all links.
        """
        if not topology or not self.dimensions:
            return self.bandwidth
        used = sum(min(2, int(side) - 1) for side in topology.split("x"))
        return self.bandwidth * used / (2 * self.dimensions)


HOST = 8
"""GPUs of one machine, as in NVIDIA's HGX and DGX systems; more of them are several machines."""
_PCIE = {3: 15.75 * GIGA, 4: 31.5 * GIGA, 5: 63 * GIGA}

LINKS: Mapping[str, Links] = {
    "v100": Links(150 * GIGA, HOST),  # [sheet] 300 GB/s
    "t4": Links(_PCIE[3], HOST, "PCIe"),
    "a100": Links(300 * GIGA, HOST),  # [sheet] 600 GB/s
    "a10": Links(_PCIE[4], HOST, "PCIe"),
    "a6000": Links(56.25 * GIGA, 2),  # [sheet] 112.5 GB/s, two GPUs
    "l4": Links(_PCIE[4], HOST, "PCIe"),
    "l40s": Links(_PCIE[4], HOST, "PCIe"),
    "rtx4090": Links(_PCIE[4], HOST, "PCIe"),
    "rtx5090": Links(_PCIE[5], HOST, "PCIe"),
    "rtx6000pro": Links(_PCIE[5], HOST, "PCIe"),
    "h100": Links(450 * GIGA, HOST),  # [sheet] 900 GB/s
    "h200": Links(450 * GIGA, HOST),  # [sheet] 900 GB/s
    "b200": Links(900 * GIGA, HOST),  # [sheet] 1.8 TB/s
    "gb200": Links(900 * GIGA, 72),  # [sheet] 1.8 TB/s, GB200 NVL72
    "b300": Links(900 * GIGA, HOST),  # [sheet] 1.8 TB/s
    "v5e": Links(200 * GIGA, 0, "ICI", 2),  # [cloud] 400 GB/s
    "v5p": Links(600 * GIGA, 0, "ICI", 3),  # [cloud] 1200 GB/s
    "v6e": Links(400 * GIGA, 0, "ICI", 2),  # [cloud] 800 GB/s
}
"""Links by the name of the chip."""


@dataclass(frozen=True, slots=True)
class HostLink:
    """The link between a device and its host."""

    name: str
    bandwidth: float
    """Bytes per second in one direction."""


def _pcie(generation: int) -> HostLink:
    """Return a link of 16 lanes, which is what the data sheets name [sheet]."""
    return HostLink(f"PCIe {generation} ×16", _PCIE[generation])


HOST_LINKS: Mapping[str, HostLink] = {
    **dict.fromkeys(("v100", "t4"), _pcie(3)),
    **dict.fromkeys(("a100", "a10", "a6000", "l4", "l40s", "rtx4090"), _pcie(4)),
    **dict.fromkeys(("rtx5090", "rtx6000pro", "h100", "h200", "b200"), _pcie(5)),
    "gb200": HostLink("NVLink-C2C", 450 * GIGA),  # [c2c] 900 GB/s
    **dict.fromkeys(("v4", "v5e", "v5p"), HostLink("PCIe", 16 * GIGA)),  # [book]
    "v6e": HostLink("PCIe", 32 * GIGA),  # [book]
}
"""Links to the host by the name of the chip; B300 and TPU7x have no public figure here."""
