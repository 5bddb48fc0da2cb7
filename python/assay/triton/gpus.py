"""The GPUs that the machine answers as: what programs ask their device for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """One row of `GPUS`. Bytes, kHz, bits; limits of a block where nothing else is said."""

    name: str
    arch: str
    multiprocessors: int
    total_memory: int
    shared_memory_optin: int
    shared_memory_per_multiprocessor: int
    threads_per_multiprocessor: int
    l2_cache: int
    clock: int
    memory_clock: int
    memory_bus: int

    shared_memory = 48 * 1024
    registers = 65536
    warp_size = 32
    threads_per_block = 1024

    @property
    def capability(self) -> tuple[int, int]:
        number = int(self.arch[3:])
        return number // 10, number % 10


_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30

GPUS = (
    Gpu("NVIDIA H100 80GB HBM3", "sm_90", 132, 80 * _GIB, 227 * _KIB, 228 * _KIB, 2048, 50 * _MIB, 1980000, 2619000, 5120),
    Gpu("NVIDIA H200", "sm_90", 132, 140 * _GIB, 227 * _KIB, 228 * _KIB, 2048, 60 * _MIB, 1980000, 3201000, 6144),
    Gpu("NVIDIA A100-SXM4-80GB", "sm_80", 108, 80 * _GIB, 163 * _KIB, 164 * _KIB, 2048, 40 * _MIB, 1410000, 1593000, 5120),
    Gpu("NVIDIA L40", "sm_89", 142, 45 * _GIB, 99 * _KIB, 100 * _KIB, 1536, 96 * _MIB, 2490000, 9001000, 384),
)


def find(choice: str) -> Gpu:
    """The GPU called `choice`: an architecture ("sm_90": the first of the table), or part of a name ("H200").

    Raises ValueError that lists what there is.
    """
    for gpu in GPUS:
        if choice.lower() == gpu.arch or (choice and choice.lower() in gpu.name.lower().replace("-", " ").split()):
            return gpu
    known = ", ".join(f"{gpu.arch} ({gpu.name})" for gpu in GPUS)
    raise ValueError(f"no GPU {choice!r} is known to the machine: choose one of {known}")
