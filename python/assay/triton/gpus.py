"""The GPUs that the machine answers as: what programs ask their device for."""

from __future__ import annotations

from dataclasses import dataclass

from assay import _engine


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


GPUS = tuple(Gpu(**row) for row in _engine.about()["gpus"])


def find(choice: str) -> Gpu:
    """The GPU called `choice`: an architecture ("sm_90": the first of the table), or part of a name ("H200").

    Raises ValueError that lists what there is.
    """
    for gpu in GPUS:
        if choice.lower() == gpu.arch or (choice and choice.lower() in gpu.name.lower().replace("-", " ").split()):
            return gpu
    known = ", ".join(f"{gpu.arch} ({gpu.name})" for gpu in GPUS)
    raise ValueError(f"no GPU {choice!r} is known to the machine: choose one of {known}")
