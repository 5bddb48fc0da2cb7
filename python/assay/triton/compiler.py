"""Triton's compiler for NVIDIA, stopped at PTX."""

from __future__ import annotations

import functools


@functools.lru_cache(maxsize=None)
def stopped_at_ptx(backend):
    """A class derived from Triton's `CUDABackend` that needs no assembler.

    The stage "cubin" stays, since Triton keeps the file of that name for launching; it holds the PTX's bytes.
    """

    class PtxBackend(backend):
        def add_stages(self, stages, *arguments):
            super().add_stages(stages, *arguments)
            stages["cubin"] = lambda ptx, metadata: ptx.encode()

        def hash(self):
            """Part of the key of Triton's cache: what is kept there is not what a GPU would load."""
            return super().hash() + "-ptx-for-assay"

    PtxBackend.__name__ = backend.__name__
    PtxBackend.__qualname__ = backend.__qualname__
    return PtxBackend


def install(patches):
    """The compiler of every launch while `patches` last. Raises RuntimeError where Triton has none for NVIDIA."""
    from triton.backends import backends

    for name, found in list(backends.items()):
        if found.compiler.__module__ == "triton.backends.nvidia.compiler":
            patches.set_item(backends, name, type(found)(stopped_at_ptx(found.compiler), found.driver))
            return
    raise RuntimeError("this Triton was built without its NVIDIA backend: nothing compiles to PTX")
