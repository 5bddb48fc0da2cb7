"""Functions that no operator describes, under fuzzing: drawn inputs, a reference of the user's, and all that can be
said of launches whatever they compute."""
from __future__ import annotations

import random
import sys
import time as clock
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy

from . import _engine, _tensors
from ._engine import Progress
from ._record import as_text
from .calling import name_of
from .case_tensors import InTorch, tensors_for
from .errors import BadInput
from .function_run import failed, on_backend, watched
from .on_gpu import GpuLaunches
from .results import Verification

_VALUES = ("normal", "uniform", "positive", "negative", "large", "small", "zeros", "ones", "sparse")

#: One rounding to a format, of the value.
_ROUNDOFF = {"fp64": 2.0**-53, "fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}


@dataclass(frozen=True)
class Tensors:
    """A strategy: tensors of named axes.

    Args:
        axes: as in ("B", "T", 64): letters are sizes that all inputs share, numbers are themselves.
        dtypes: formats to draw from: "fp32", "bf16", "fp16", "fp64", "i32", "i64".
        values: kinds to draw from: "normal", "uniform" (-1 to 1), "positive", "negative", "large" (normal times 100), "small" (times
            2^-10), "zeros", "ones", "sparse" (one in eight is not 0); of integers "low:high".
    """

    axes: tuple[str | int, ...]
    dtypes: tuple[str, ...] = ("fp32",)
    values: tuple[str, ...] = ("normal", "positive", "negative", "large", "small", "sparse", "ones", "zeros")


def tensors(axes: Sequence[str | int], dtypes: str | Sequence[str] = "fp32", values: str | Sequence[str] | None = None) -> Tensors:
    """A strategy for `fuzz(fn, inputs={"x": assay.tensors(("B", "N"), "fp32")})`; see `Tensors`."""
    kinds = Tensors.values if values is None else (values,) if isinstance(values, str) else tuple(values)
    for kind in kinds:
        if kind not in _VALUES and ":" not in kind:
            raise BadInput(f"values: {kind}: one of {', '.join(_VALUES)}, or low:high of integers")
    formats = (dtypes,) if isinstance(dtypes, str) else tuple(dtypes)
    for name in formats:
        if name not in _NUMPY and name != "bf16":
            raise BadInput(f"dtypes: {name}: one of bf16, {', '.join(_NUMPY)}")
    return Tensors(tuple(axes), formats, kinds)


_NUMPY = {"fp64": numpy.float64, "fp32": numpy.float32, "fp16": numpy.float16, "i64": numpy.int64, "i32": numpy.int32}

#: Sizes that are drawn of an axis that nobody restricts: one, around powers of two, beyond a tile.
_SIZES = (1, 2, 3, 7, 8, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257)


@dataclass(frozen=True)
class Drawn:
    """A case: sizes of axes, format and kind of values by input, seed; str() is its token."""

    sizes: tuple[tuple[str, int], ...]
    kinds: tuple[tuple[str, str, str], ...]
    seed: int

    def __str__(self) -> str:
        sizes = "/".join(f"{axis}{size}" for axis, size in self.sizes)
        kinds = "/".join(f"{name}={dtype}-{values}" for name, dtype, values in self.kinds)
        return "/".join(part for part in (sizes, kinds, f"s{self.seed}") if part)


def drawn_from(token: str) -> Drawn:
    """The case of a token."""
    sizes, kinds, seed = [], [], 1
    try:
        for part in token.split("/"):
            if "=" in part:
                name, rest = part.split("=", 1)
                dtype, values = rest.split("-", 1)
                kinds.append((name, dtype, values))
            elif part.startswith("s") and part[1:].isdigit():
                seed = int(part[1:])
            else:
                letters = part.rstrip("0123456789")
                sizes.append((letters, int(part[len(letters) :])))
    except ValueError:
        raise BadInput(f"token: {token}: of sizes, inputs and a seed, as in N8/x=fp32-normal/s1") from None
    return Drawn(tuple(sizes), tuple(kinds), seed)


@dataclass
class FoundIn:
    """A finding: the shrunk case, and what the verification of it says."""

    case: Drawn
    verification: Verification

    @property
    def cause(self) -> str:
        return self.verification.cause

    def __str__(self) -> str:
        return f"{self.cause}\n  {self.case}\n{self.verification.text()}"


@dataclass
class FreeFuzz:
    """What `fuzz(fn, inputs=..)` found."""

    name: str
    cases: int = 0
    passed: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    """cases that the function did not take, by its reason"""
    unjudged: int = 0
    """cases whose values nothing could judge: outputs that no launch wrote, and no tolerance"""
    findings: list[FoundIn] = field(default_factory=list)
    errors: dict[str, tuple[float, str]] = field(default_factory=dict)
    """of cases that passed without a tolerance: name -> (largest difference from the reference as a share of the output's root mean
    square, format)"""
    seconds: float = 0.0
    seed: int = 0
    gpu: GpuLaunches | None = None
    """bits of launches on the GPU, with backend="both"; else None"""

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings]
        lines += [f"{count} cases refused: {reason}" for reason, count in self.refused.items()]
        if self.unjudged:
            lines.append(f"values of {self.unjudged} cases not judged: no launch wrote them, and no tolerance is given")
        for name, (error, dtype) in self.errors.items():
            count = error / _ROUNDOFF[dtype]
            lines.append(
                f"rounding: {name} is off by up to {error:.2g} of its root mean square, {count:.0f} roundings of {dtype}: not judged, as no "
                f"tolerance is given" + ("; products in tf32 or 16 bits, and 16-bit sums, leave as much" if count > 1024 and dtype == "fp32" else "")
            )
        if self.gpu is not None:
            lines.append(str(self.gpu))
        verdict = "finding" if self.findings else "pass"
        lines.append(
            f"{verdict}  {self.name}: {self.cases} cases in {self.seconds:.1f} s: {self.passed} passed; "
            f"{len(self.findings)} findings; seed {self.seed}"
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return as_text(str(self))


class _Free:
    """One function, its strategies and reference."""

    def __init__(self, fn: Any, inputs: Mapping[str, Tensors], reference: Any, tolerance: Any, kind: Any, name: str):
        for key, strategy in inputs.items():
            if not isinstance(strategy, Tensors):
                raise BadInput(f"inputs: {key}: a strategy was expected, as in assay.tensors((\"N\",)), not {type(strategy).__name__}")
        self.fn, self.inputs, self.reference, self.tolerance, self.kind, self.name = fn, inputs, reference, tolerance, kind, name
        self.succeeded = False
        #: Of the last case; as FreeFuzz has them.
        self.errors: dict[str, tuple[float, str]] = {}

    def draw(self, random_: random.Random, sizes: Mapping[str, Sequence[int]], elements: int) -> Drawn:
        letters = sorted({a for s in self.inputs.values() for a in s.axes if isinstance(a, str)})
        while True:
            chosen = tuple((a, random_.choice(list(sizes.get(a, _SIZES)))) for a in letters)
            largest = max((self._count(s, dict(chosen)) for s in self.inputs.values()), default=0)
            if largest <= elements:
                break
            elements = int(elements * 1.1) + 1  # where what is asked for is large
        dtype = {s.dtypes: random_.choice(s.dtypes) for s in self.inputs.values()}  # alike where they may be
        kinds = tuple((n, dtype[s.dtypes], random_.choice(s.values)) for n, s in self.inputs.items())
        return Drawn(chosen, kinds, random_.randrange(1, 1_000_000))

    @staticmethod
    def _count(strategy: Tensors, sizes: Mapping[str, int]) -> int:
        count = 1
        for axis in strategy.axes:
            count *= axis if isinstance(axis, int) else sizes[axis]
        return count

    def values(self, case: Drawn) -> dict[str, numpy.ndarray]:
        """float64, or integers: rounded to the formats of the case already."""
        sizes, made = dict(case.sizes), {}
        for index, (name, dtype, kind) in enumerate(case.kinds):
            shape = [a if isinstance(a, int) else sizes[a] for a in self.inputs[name].axes]
            generator = numpy.random.default_rng([case.seed, index])
            made[name] = _rounded(_values(generator, shape, dtype, kind), dtype)
        return made

    def check(self, case: Drawn, options: dict[str, Any], progress: Progress | None) -> tuple[Verification | None, Any]:
        given = self.values(case)

        def serve(run: _engine.Run) -> dict[str, Any]:
            with watched(run) as watch:
                arguments = {name: self._tensor(value, dtype) for (name, dtype, _), value in zip(case.kinds, given.values())}
                for name, value in arguments.items():
                    run.named(self._array(name, value))
                try:
                    outputs = self._named(self.fn(**arguments))
                except BaseException as error:
                    said = failed(error, watch, self.succeeded)
                    if said is None:
                        raise
                    return said
                for name, value in outputs.items():
                    array = self._array(name, value)
                    run.named(array)
                    run.output(array)
            if self.reference is not None:
                for name, value in self._named(self._referred(given)).items():
                    right = numpy.asarray(_host(value), dtype=numpy.float64)
                    run.output(self._array("expected " + name, right))
                    self._note_error(name, outputs.get(name), right)
            self.succeeded = True
            return {}

        self.errors = {}
        dtype = case.kinds[0][1] if case.kinds else "fp32"
        tolerance = self.tolerance.get(dtype, 0.0) if isinstance(self.tolerance, Mapping) else self.tolerance or 0.0
        request = {"name": self.name, "tolerance": float(tolerance), "replay": f'assay.replay("{case}", {self.name}, inputs=.., ..)', **options}
        value = _engine.call_function("check_function", request, serve, progress=progress).value
        if "refused" in value:
            return None, value["refused"]
        return Verification.from_json(value["result"]), value["unjudged"]

    def _note_error(self, name: str, value: Any, right: numpy.ndarray) -> None:
        if self.tolerance is not None or value is None:
            return
        array = self._array(name, value)
        dtype = _tensors.FORMATS[array.format] if array.format >= 0 else ""
        got = numpy.asarray(_host(value).double() if _tensors.is_torch(value) else value, dtype=numpy.float64).ravel()
        right = right.ravel()
        if dtype not in _ROUNDOFF or got.shape != right.shape:
            return
        finite = numpy.isfinite(got) & numpy.isfinite(right)
        size = float(numpy.sqrt(numpy.mean(right[finite] ** 2))) if finite.any() else 0.0
        if size > 0:
            self.errors[name] = float(abs(got - right)[finite].max()) / size, dtype

    def _referred(self, given: Mapping[str, numpy.ndarray]) -> Any:
        if not isinstance(self.kind, InTorch):
            return self.reference(**{name: value.copy() for name, value in given.items()})
        torch = self.kind.torch
        made = {}
        for name, value in given.items():
            tensor = torch.empty(value.shape, dtype=torch.float64 if value.dtype.kind == "f" else torch.int64)
            made[name] = _filled(tensor, value)
        return self.reference(**made)

    def _tensor(self, value: numpy.ndarray, dtype: str) -> Any:
        if not isinstance(self.kind, InTorch):
            if dtype not in _NUMPY:
                raise BadInput(f"{self.name}: NumPy has no {dtype}: tensors=\"torch\"")
            return value.astype(_NUMPY[dtype])
        torch = self.kind.torch
        formats = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64, "i32": torch.int32, "i64": torch.int64}
        wide = torch.empty(value.shape, dtype=torch.float64 if value.dtype.kind == "f" else torch.int64)
        tensor = _filled(wide, value).to(formats[dtype])
        return tensor.to(self.kind.device) if self.kind.device != "cpu" else tensor

    def _named(self, returned: Any) -> dict[str, Any]:
        if returned is None:
            raise BadInput(f"{self.name}: it returned nothing")
        if isinstance(returned, Mapping):
            found = dict(returned)
        elif isinstance(returned, (tuple, list)):
            found = {f"out{i}": value for i, value in enumerate(returned)}
        else:
            found = {"out": returned}
        found = {name: value for name, value in found.items() if value is not None}
        for name, value in found.items():
            if not (hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")):
                raise BadInput(f"{self.name}: {name} is a {type(value).__name__}, no tensor")
        return found

    def _array(self, name: str, value: Any) -> _engine.Array:
        return _tensors.kept_array(name, _host(value), self.name)


def _filled(tensor: Any, value: numpy.ndarray) -> Any:
    flat = numpy.ascontiguousarray(value)
    if flat.nbytes:
        import ctypes

        ctypes.memmove(tensor.data_ptr(), flat.ctypes.data, flat.nbytes)
    return tensor


def _host(value: Any) -> Any:
    if _tensors.is_torch(value):
        value = value.detach()
        return value if _tensors._device_of_torch(value).type == "cpu" else value.cpu()
    return value


def _values(generator: Any, shape: Sequence[int], dtype: str, kind: str) -> numpy.ndarray:
    if dtype in ("i32", "i64"):
        low, high = (kind.split(":") + ["1"])[:2] if ":" in kind else ("0", "2")
        return generator.integers(int(low), int(high) + 1, shape)
    if kind == "uniform":
        return generator.uniform(-1, 1, shape)
    if kind in ("zeros", "ones"):
        return numpy.full(shape, float(kind == "ones"))
    values = generator.standard_normal(shape)
    if kind in ("positive", "negative"):
        return abs(values) * (1 if kind == "positive" else -1)
    if kind == "sparse":
        return values * (generator.random(shape) < 0.125)
    return values * {"large": 100.0, "small": 2.0**-10}.get(kind, 1.0)


def _rounded(values: numpy.ndarray, dtype: str) -> numpy.ndarray:
    if dtype in ("i32", "i64"):
        return values.astype(numpy.int64)
    if dtype != "bf16":
        return values.astype(_NUMPY[dtype]).astype(numpy.float64)
    bits = values.astype(numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32).astype(numpy.float64)


def _smaller(case: Drawn) -> Iterable[Drawn]:
    """Simpler cases, those that save most first."""
    for i, (axis, size) in enumerate(case.sizes):
        for less in dict.fromkeys((1, 2, 3, size // 2, size - 1)):
            if 0 < less < size:
                yield Drawn((*case.sizes[:i], (axis, less), *case.sizes[i + 1 :]), case.kinds, case.seed)
    for i, (name, dtype, kind) in enumerate(case.kinds):
        for simple in ("ones", "normal"):
            if ":" not in kind and kind != simple and (simple, kind) != ("normal", "ones"):
                yield Drawn(case.sizes, (*case.kinds[:i], (name, dtype, simple), *case.kinds[i + 1 :]), case.seed)


def fuzz(
    fn: Callable[..., Any],
    inputs: Mapping[str, Tensors],
    reference: Callable[..., Any] | None,
    *,
    tolerance: float | Mapping[str, float] | None,
    time: float,
    cases: int,
    seed: int | None,
    sizes: Mapping[str, Sequence[int]] | None,
    elements: int,
    checks: str,
    repeats: bool,
    tensors: str | None,
    backend: str | None,
    arch: str,
    name: str | None,
    shrink: int,
    progress: Progress | None,
) -> FreeFuzz:
    """assay.fuzz without an operator."""
    chosen = random.getrandbits(31) if seed is None else seed
    random_ = random.Random(chosen)
    with on_backend(backend, arch) as (where, gpu):
        subject = _Free(fn, inputs, reference, tolerance, tensors_for(tensors, where), name or name_of(fn))
        session = sys.modules.get("assay.triton.session")
        machine = session.active() if session is not None else None
        options = {"checks": checks, "repeats": repeats, "arch": machine.gpu.arch if machine else "sm_90"}
        if machine is None:
            options["backend"] = where
        run, start = FreeFuzz(subject.name, seed=chosen), clock.perf_counter()
        while run.cases < cases if cases else clock.perf_counter() - start < time:
            case = subject.draw(random_, sizes or {}, elements)
            found, said = subject.check(case, options, progress)
            if found is None:
                run.refused[said] = run.refused.get(said, 0) + 1
                if sum(run.refused.values()) >= 64 and not run.cases:
                    raise BadInput(f"{subject.name}: none of the first 64 cases is taken: {said}")
                continue
            run.cases += 1
            run.unjudged += bool(said)
            if found.verdict == "pass":
                run.passed += 1
                for key, error in subject.errors.items():
                    run.errors[key] = max(run.errors.get(key, error), error, key=lambda row: row[0] / _ROUNDOFF[row[1]])
            elif all(other.cause != found.cause for other in run.findings):
                run.findings.append(_shrunk(subject, FoundIn(case, found), options, shrink, progress))
        run.seconds = clock.perf_counter() - start
        run.gpu = gpu.seen if gpu is not None else None
    return run


def replay(
    token: str,
    fn: Callable[..., Any],
    inputs: Mapping[str, Tensors],
    reference: Callable[..., Any] | None = None,
    *,
    tolerance: float | Mapping[str, float] | None = None,
    checks: str = "all",
    repeats: bool = True,
    tensors: str | None = None,
    backend: str | None = None,
    arch: str = "sm_90",
    name: str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """A case again, from its token; options as `assay.fuzz` has them."""
    with on_backend(backend, arch) as (where, gpu):
        subject = _Free(fn, inputs, reference, tolerance, tensors_for(tensors, where), name or name_of(fn))
        subject.succeeded = True
        options = {"checks": checks, "repeats": repeats, "arch": arch, **({} if where == "machine" else {"backend": where})}
        found, why = subject.check(drawn_from(token), options, progress)
    if found is None:
        raise BadInput(f"{subject.name}: the case is not taken: {why}")
    return found


def _shrunk(subject: _Free, found: FoundIn, options: dict[str, Any], most: int, progress: Progress | None) -> FoundIn:
    tried, moved = 0, True
    while moved and tried < most:
        moved = False
        for candidate in _smaller(found.case):
            if tried >= most:
                break
            tried += 1
            verification, _ = subject.check(candidate, options, progress)
            if verification is not None and verification.cause == found.cause:
                found, moved = FoundIn(candidate, verification), True
                break
    return found
