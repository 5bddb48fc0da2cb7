"""assay verifies GPU kernels numerically, on a GPU or without one.

    assay.machine       runs PTX on the process's own memory, bit for bit as a GPU does
    assay.results       what checks and verifications say, as dataclasses
"""
from __future__ import annotations

from . import machine, results
from ._engine import about as _about
from .errors import BadInput, EngineError

__all__ = ["BadInput", "EngineError", "machine", "results"]

__version__: str = _about()["version"]
