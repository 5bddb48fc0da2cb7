"""assay verifies GPU kernels numerically, on a GPU or without one.

    assay.reference("gla", q=q, k=k, v=v, g=g)              midpoints and radii of an operator's outputs
    assay.verify("gla", outputs={"o": o}, q=q, k=k, ...)    judges any outputs against proved bounds
    assay.verify("gla.chunk", q=q, ...)                     runs one of assay's kernels and judges it
    assay.inspect(q=q, k=k, ...)                            what tensors hold, and which operators they fit
    assay.trace("gla.chunk", q=q, ...)                      where a NaN was born, what stands behind an element
    assay.check("saxpy.json", sizes={"n": 1000})            what is wrong with a program, whatever it computes
    assay.replay("gla.chunk/B1/T80/...")                    a case again from its token
    assay.fuzz("gla", fn, arithmetic="triton-chunk")        a function of yours, on many cases
    assay.arithmetic(fn, "gla")                             what such a function may declare of its roundings
    assay.capture("run.assay", when="nonfinite")            launches written down, to be run again anywhere
    assay.watch()                                           first births of NaN in Triton's kernels, on a GPU, while it runs
    assay.machine.run(module, ...)                          one launch of PTX on the process's own memory

Tensors are NumPy arrays, PyTorch's, or any with DLPack, in the processor's memory, with any strides.
"""
from __future__ import annotations

from . import machine, results
from ._engine import about as _about
from .api import Reference, ReferenceOutput, Rounded, check, inspect, reference, replay, trace, verify
from .arithmetic_proposal import Proposal, arithmetic
from .capturing import Captured, capture
from .errors import BadInput, EngineError, Refused
from .free import FreeFuzz, Tensors, tensors
from .fuzzing import fuzz, subject
from .machine import OverBudget
from .on_gpu import GpuDiffers, GpuLaunches
from .watch import watch

__all__ = [
    "BadInput",
    "Captured",
    "EngineError",
    "FreeFuzz",
    "GpuDiffers",
    "GpuLaunches",
    "OverBudget",
    "Proposal",
    "Reference",
    "ReferenceOutput",
    "Refused",
    "Rounded",
    "Tensors",
    "arithmetic",
    "capture",
    "check",
    "fuzz",
    "inspect",
    "machine",
    "reference",
    "replay",
    "results",
    "subject",
    "tensors",
    "trace",
    "verify",
    "watch",
]

__version__: str = _about()["version"]
