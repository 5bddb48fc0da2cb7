"""What `import assay` offers of operators, kernels and programs."""
from __future__ import annotations

import ctypes
import os
import struct
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence

import numpy

from . import _engine, _tensors, free, fuzzing, machine
from ._engine import Progress
from ._record import as_text
from .errors import BadInput
from .results import Inspection, Verification

Tensor = Any
"""A NumPy array, a PyTorch tensor, or any object with DLPack, in the processor's memory, with any strides."""


class Rounded(UserWarning):
    """A tensor was rounded before anything saw it: which, from what to what, and how many values changed."""


@dataclass(eq=False)
class ReferenceOutput:
    """One output, or one gradient, of an operator: the exact value lies in [mid - rad, mid + rad]."""

    name: str
    axes: tuple[str, ...]
    """names of the axes, as in ("B", "T", "H", "V")"""
    mid: numpy.ndarray
    """midpoints, float64, of the output's shape"""
    rad: numpy.ndarray
    """radii, float64; infinite where the midpoint is not finite"""
    rung: int
    """highest precision that was used: 0 double, 1 double-double, 2 more"""
    undecided: str = ""
    """why some radii are wider than was asked for; "" where none is"""


@dataclass(eq=False)
class Reference:
    """An operator's outputs as proved enclosures; `reference["o"]` and `reference.o` are the one named o."""

    operator: str
    outputs: dict[str, ReferenceOutput]
    scale: float
    """that was used: as given, or the operator's default"""
    notes: list[str] = field(default_factory=list)
    """what was rounded, and tensors that were read in another order of axes"""
    seconds: float = 0.0

    def __getitem__(self, name: str) -> ReferenceOutput:
        return self.outputs[name]

    def __getattr__(self, name: str) -> ReferenceOutput:
        outputs: dict[str, ReferenceOutput] = self.__dict__.get("outputs", {})
        if name not in outputs:
            raise AttributeError(name)
        return outputs[name]

    def __str__(self) -> str:
        lines = [f"reference of {self.operator}, scale {self.scale:.9g}"]
        for output in self.outputs.values():
            shape = ",".join(f"{axis}={size}" for axis, size in zip(output.axes, output.mid.shape))
            finite = output.rad[numpy.isfinite(output.rad)]
            lines.append(f"  {output.name} [{shape}]  radii up to {finite.max() if finite.size else 0:.3g}")
            if output.undecided:
                lines.append(f"    {output.undecided}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        return as_text(str(self))


class _Given:
    """Keyword arguments as a request: tensors, numbers of the operator, what is absent."""

    def __init__(self, tensors: Mapping[str, Tensor], outputs: Mapping[str, Tensor] | None = None):
        self.arrays: list[_engine.Array] = []
        self.keep: list[Any] = []
        self.parameters: dict[str, float] = {}
        for name, value in [*tensors.items(), *(outputs or {}).items()]:
            if value is None:
                continue
            if isinstance(value, (bool, int, float)) and not (outputs and name in outputs):
                self.parameters[name] = float(value)
                continue
            if name == "cu_seqlens" and isinstance(value, (list, tuple)):
                value = numpy.asarray(value, dtype=numpy.int64)
            self._add(name, value)

    def _add(self, name: str, value: Tensor) -> None:
        if any(array.name == name.encode() for array in self.arrays):
            raise BadInput(f"{name} is given twice, as an input and as an output")
        try:
            at = _tensors.lies(value)
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from None
        if at.format is None:
            raise BadInput(f"{name}: elements of {at.dtype}; known are {', '.join(_tensors.FORMATS)}")
        self.arrays.append(
            _tensors.array_of(
                name, at.address, at.nbytes, format=at.format, shape=at.shape, strides=at.strides, offset=at.offset
            )
        )
        self.keep.append((value, at))

    def request(self, **options: Any) -> dict[str, Any]:
        request = {key: value for key, value in options.items() if value is not None}
        numbers = dict(self.parameters)
        if "scale" in numbers:
            request["scale"] = numbers.pop("scale")
        if numbers:
            request["parameters"] = numbers
        return request


def _warn(notes: Sequence[str], stacklevel: int) -> None:
    for note in notes:
        if ": rounded from " in note:
            warnings.warn(note, Rounded, stacklevel=stacklevel + 1)


def _array(answer: _engine.Answer, index: int) -> numpy.ndarray:
    array = answer.array(index)
    assert array is not None and array.format == _tensors.FORMATS.index("fp64")
    shape = tuple(array.shape[: array.rank])
    values = numpy.empty(shape, dtype=numpy.float64)
    if array.bytes:
        ctypes.memmove(values.ctypes.data, array.address, array.bytes)
    return values


def reference(
    op: str,
    *,
    direction: str | None = None,
    layout: str | None = None,
    heads: int | None = None,
    dtype: str | None = None,
    gate_dtype: str | None = None,
    precision: float = 2.0**-40,
    threads: int = 0,
    progress: Progress | None = None,
    **tensors: Tensor,
) -> Reference:
    """An operator's outputs on these inputs, evaluated exactly but for proved radii.

    Args:
        op: the operator, as in "gla" (`assay list operators` says all, with their inputs, axes and formulas).
        direction: "forward" (outputs), "backward" (gradients dq, dk, ...), "both"; by itself backward where a
            cotangent ("do") is among the tensors.
        layout: how tensors hold their axes, as in "heads-first" or "heads-first,k=dense" (`--layout`).
        heads: their number, where shapes leave it open.
        dtype, gate_dtype: formats that values, and log decays, are rounded to first: "bf16", "fp16", "fp32".
        precision: radii are at most this share of the value, where enclosures come that far.
        threads: 0: all cores.
        **tensors: inputs by name: q [B,T,H,K], k [B,T,H,K], v [B,T,H,V], g in natural logarithms, initial_state
            [N,H,K,V], cu_seqlens [N+1] and so on, in bf16, fp16, fp32 or fp64 (which is rounded to fp32 with a
            warning `Rounded`, or to `dtype`); None for those that are absent; `scale` and other numbers as they are.
    Raises:
        BadInput: a tensor that is missing or unknown, a shape or a format that does not fit; one line.
    """
    given = _Given(tensors)
    request = given.request(
        name=op,
        direction=direction,
        layout=layout,
        heads=heads,
        dtype=dtype,
        gate_dtype=gate_dtype,
        precision=float(precision),
        threads=threads,
    )
    answer = _engine.call("reference", request, given.arrays, progress=progress, keep=given.keep)
    value = answer.value
    _warn(value["notes"], 2)
    outputs = {
        row["name"]: ReferenceOutput(
            name=row["name"],
            axes=tuple(row["axes"]),
            mid=_array(answer, 2 * i),
            rad=_array(answer, 2 * i + 1),
            rung=row["rung"],
            undecided=row["undecided"],
        )
        for i, row in enumerate(value["outputs"])
    }
    return Reference(value["operator"], outputs, value["scale"], value["notes"], value["seconds"])


def _verification(answer: _engine.Answer) -> Verification:
    _warn(answer.value["notes"], 3)
    return Verification.from_json(answer.value["result"])


def verify(
    op: str,
    *,
    outputs: Mapping[str, Tensor] | None = None,
    arithmetic: str | Mapping[str, float | str] | None = None,
    direction: str | None = None,
    layout: str | None = None,
    heads: int | None = None,
    dtype: str | None = None,
    gate_dtype: str | None = None,
    diagnose: bool = True,
    arch: str = "sm_90",
    checks: str = "all",
    threads: int = 0,
    progress: Progress | None = None,
    **tensors: Tensor,
) -> Verification:
    """Judges every element of outputs against its proved bound.

    With `outputs`, what anything has made of the tensors is judged: a GPU, PyTorch, another library. Without, `op`
    names one of assay's kernels, which runs on the machine (`assay verify --inputs` does the same).

    Args:
        op: an operator, as in "gla", or a kernel, as in "gla.chunk".
        outputs: by name, as in {"o": o, "final_state": s}, gradients as "dq"; any floating-point format.
        arithmetic: of the outputs: whose ("gla.fused_recurrent"), a preset ("fp32-recurrent"), or numbers and
            expressions of sizes, as in {"chunk": 64, "write": 0, "readout": "K * 2^-24"}; by itself that of assay's
            first kernel of the operator which takes the case.
        diagnose: of wrong outputs, look for what was computed instead (at most about 10 s).
        arch, checks, threads: of a kernel's run: "sm_80", "sm_89", "sm_90"; "all", "none" or names.
        direction, layout, heads, dtype, gate_dtype, **tensors: as `reference` has them.
    Returns:
        `.verdict` is "pass", "finding", "undecided" or "domain"; print() says what `assay verify` says.
    Raises:
        BadInput: as `reference`.
    """
    given = _Given(tensors, outputs)
    request = given.request(
        name=op,
        judge_outputs=outputs is not None,
        arithmetic=dict(arithmetic) if isinstance(arithmetic, Mapping) else arithmetic,
        direction=direction,
        layout=layout,
        heads=heads,
        dtype=dtype,
        gate_dtype=gate_dtype,
        diagnose=diagnose,
        arch=arch,
        checks=checks,
        threads=threads,
    )
    return _verification(_engine.call("verify", request, given.arrays, progress=progress, keep=given.keep))


def inspect(*, layout: str | None = None, heads: int | None = None, **tensors: Tensor) -> Inspection:
    """What tensors hold (ranges, exponents, NaN, infinities), and which operators they can be the inputs of.

    Args:
        layout, heads: as `reference` has them.
        **tensors: by the names that operators give their inputs and outputs.
    """
    given = _Given(tensors)
    if given.parameters:
        raise BadInput(f"{', '.join(given.parameters)}: a tensor was expected, got a number")
    request = given.request(layout=layout, heads=heads)
    return Inspection.from_json(_engine.call("inspect", request, given.arrays, keep=given.keep).value)


def trace(
    kernel: str,
    *,
    element: str | None = None,
    first: bool = False,
    all: bool = False,
    direction: str | None = None,
    layout: str | None = None,
    heads: int | None = None,
    dtype: str | None = None,
    gate_dtype: str | None = None,
    arch: str = "sm_90",
    checks: str = "all",
    threads: int = 0,
    progress: Progress | None = None,
    **tensors: Tensor,
) -> Verification:
    """Where a non-finite output element of a kernel was born, what stands behind any element, and how far the run is
    from exact arithmetic (`assay trace`).

    Args:
        kernel: a kernel, as in "gla.chunk", with its tensors; or the token of a case, without.
        element: the one to walk back from, as in "o[0,16,0,3]"; by itself the first that is not finite, or the one
            furthest beyond its bound.
        first: the non-finite one that was born first in the order of execution.
        all: every distinct origin.
        direction, layout, heads, dtype, gate_dtype, arch, checks, threads, **tensors: as `verify` has them.
    """
    given = _Given(tensors)
    request = given.request(
        name=kernel,
        element=element,
        first=first,
        all=all,
        direction=direction,
        layout=layout,
        heads=heads,
        dtype=dtype,
        gate_dtype=gate_dtype,
        arch=arch,
        checks=checks,
        threads=threads,
    )
    return _verification(_engine.call("trace", request, given.arrays, progress=progress, keep=given.keep))


def replay(
    token: str,
    fn: Callable[..., Any] | None = None,
    op: str | None = None,
    *,
    arch: str = "sm_90",
    checks: str = "all",
    threads: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> Verification:
    """A case again from its token, with every property that applies to it (`assay replay`).

    Args:
        token: as in "gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0".
        fn: the function that `fuzz` found it of, which computes the operator `op`; options as `fuzz` has them.
    """
    if fn is not None and "inputs" in options:
        return free.replay(token, fn, progress=progress, arch=arch, checks=checks, **options)
    if fn is not None:
        return fuzzing.replay(token, fn, op, progress=progress, arch=arch, **options)
    if options:
        raise BadInput(f"replay: {next(iter(options))}: an option of functions: give the function too")
    request = {"token": token, "name": token, "arch": arch, "checks": checks, "threads": threads}
    return _verification(_engine.call("replay", request, progress=progress))


def check(
    program: str | os.PathLike[str] | machine.Module,
    *,
    ptx: Sequence[str | os.PathLike[str]] = (),
    sizes: Mapping[str, int] | None = None,
    seed: int = 1,
    vary: str = "",
    expect: Mapping[str, Tensor] | None = None,
    tolerance: float = 0.0,
    precision: bool = False,
    entry: str | None = None,
    grid: Sequence[int] = (1, 1, 1),
    block: Sequence[int] = (1, 1, 1),
    arguments: Sequence[Any] = (),
    cluster: Sequence[int] | None = None,
    shared_bytes: int = 0,
    checks: str = "all",
    repeats: bool = True,
    arch: str = "sm_90",
    threads: int = 0,
    progress: Progress | None = None,
) -> Verification:
    """Runs a program that no operator describes, and says what is wrong with it whatever it computes.

    `check("saxpy.json", ptx=["saxpy.ptx"], sizes={"n": 1000})` takes a launch file or a capsule, as `assay check`.
    `check(Module(text), entry="saxpy", grid=(8, 1, 1), block=(128, 1, 1), arguments=[x, y, 1000, 2.0])` makes one
    launch on arrays: what it writes stays in them.

    Args:
        program: path of a launch file, of a folder with one or of a capsule; or, for a launch on arrays, a module or
            the path of a .ptx file.
        ptx, sizes, seed, vary, expect, tolerance, precision: of a launch file: PTX in its place, its sizes, the seed of
            random tensors, other values, what outputs should be within which tolerance, and whether to say how far
            they are from exact arithmetic.
        entry, grid, block, cluster, shared_bytes: of a launch, as `machine.run` has them.
        arguments: of a launch, in order: tensors (passed by their address), ints and floats (by the parameter's type),
            bytes as they are, None for a null pointer.
        checks, arch, threads: "all", "none" or names; whose bits; 0: all cores.
        repeats: also other orders of blocks and warps, other bytes in unwritten memory, other architectures.
    Raises:
        BadInput: files or arguments that do not fit; one line.
    """
    if not isinstance(program, machine.Module) and os.fspath(program).endswith(".ptx") and (entry or arguments):
        program = _read_module(program)
    if isinstance(program, machine.Module):
        return _check_launch(
            program, entry, grid, block, arguments, cluster, shared_bytes, checks, repeats, arch, threads, progress
        )
    given = _Given({}, expect)
    request = {
        "file": os.fspath(program),
        "ptx": [os.fspath(path) for path in ptx],
        "sizes": {name: int(size) for name, size in (sizes or {}).items()},
        "seed": seed,
        "vary": vary,
        "tolerance": tolerance,
        "precision": precision,
        "checks": checks,
        "repeats": repeats,
        "arch": arch,
        "threads": threads,
    }
    return _verification(_engine.call("check", request, given.arrays, progress=progress, keep=given.keep))


def _read_module(path: str | os.PathLike[str]) -> machine.Module:
    try:
        with open(path, "rb") as file:
            return machine.Module(file.read(), os.fspath(path))
    except OSError as error:
        raise BadInput(f"{os.fspath(path)}: cannot be opened: {error.strerror}") from None


_FLOATS = {".f16": "<e", ".f32": "<f", ".f64": "<d"}


def _packed(parameter: machine.Parameter, value: Any, storages: list[machine.Storage]) -> bytes:
    if value is None:
        return bytes(parameter.bytes)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, (bool, int, numpy.integer)) or (isinstance(value, (float, numpy.floating))):
        if parameter.type in _FLOATS:
            return struct.pack(_FLOATS[parameter.type], value)
        if isinstance(value, (float, numpy.floating)):
            if parameter.bytes in (4, 8) and parameter.type.startswith(".b"):
                return struct.pack("<f" if parameter.bytes == 4 else "<d", value)
            raise BadInput(f"{parameter.name}: a float for a parameter of type {parameter.type}")
        return (int(value) % (1 << 8 * parameter.bytes)).to_bytes(parameter.bytes, "little")
    if not parameter.is_pointer_sized:
        raise BadInput(f"{parameter.name}: a tensor for a parameter of type {parameter.type}")
    at = _tensors.lies(value)
    width = _tensors.FORMAT_BYTES[at.format] if at.format else getattr(value, "itemsize", 1)
    storages.append(machine.Storage.of(value, parameter.name))
    return (at.address + width * at.offset).to_bytes(8, "little")


def _check_launch(
    module: machine.Module,
    entry: str | None,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Sequence[Any],
    cluster: Sequence[int] | None,
    shared_bytes: int,
    checks: str,
    repeats: bool,
    arch: str,
    threads: int,
    progress: Progress | None,
) -> Verification:
    if entry is None and len(module.entries) == 1:
        (entry,) = module.entries
    if entry is None or entry not in module.entries:
        raise BadInput(f"entry {entry}: the module has {', '.join(module.entries) or 'none'}")
    parameters = module.entries[entry].parameters
    if len(parameters) != len(arguments):
        raise BadInput(f"launch of {entry}: {len(arguments)} arguments, the entry takes {len(parameters)}")
    storages: list[machine.Storage] = []
    packed = [_packed(parameter, value, storages) for parameter, value in zip(parameters, arguments)]
    did = machine.run(
        module,
        entry,
        grid=grid,
        block=block,
        cluster=cluster,
        shared_bytes=shared_bytes,
        arguments=packed,
        storages=storages,
        arch=arch,
        checks=checks,
        repeats=repeats,
        origins=True,
        threads=threads,
        progress=progress,
    )
    assert did.verification is not None
    return did.verification
