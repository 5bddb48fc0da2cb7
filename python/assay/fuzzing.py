"""Functions under fuzzing: what a library's Python function makes of an operator's cases, judged against proved bounds."""
from __future__ import annotations

import inspect
import random
import re
import sys
import warnings
from typing import Any, Callable, Mapping, Sequence

from . import _engine
from ._engine import Progress
from .calling import Caller, Operator, name_of
from .case_tensors import InNumpy, tensors_for
from .errors import BadInput
from .function_run import on_backend
from .results import Fuzz, Verification

#: Bits of runs of other shapes and strides: what chooses its kernels by these promises none of them.
_OF_OTHER_SHAPES = (
    "split-and-resume",
    "packed-equals-separate",
    "absent-equals-zero-gate",
    "absent-equals-zero-state",
    "absent-equals-zero-cotangent",
    "strided-equals-dense",
)


class Subject:
    """What `assay.subject` has been told of a function."""

    def __init__(self, fn: Callable[..., Any], op: str, options: dict[str, Any]):
        self.fn, self.op, self.options = fn, op, options
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        self.__doc__ = fn.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


def subject(op: str, **options: Any) -> Callable[[Callable[..., Any]], Subject]:
    """A decorator: the function computes the operator `op`; options as `fuzz` has them.

        @assay.subject("gla", names={"g": "gk"}, arithmetic="triton-chunk")
        def attention(q, k, v, gk, scale): ...

        assay.fuzz(attention)
    """
    return lambda fn: Subject(fn, op, options)


def _request(op: Operator, caller: Caller, fn: Callable[..., Any], backend: str, options: dict[str, Any]) -> dict[str, Any]:
    session = sys.modules.get("assay.triton.session")
    machine = session.active() if session is not None else None
    arithmetic = options.pop("arithmetic", None)
    lacks = [] if options.pop("across_shapes", False) else list(_OF_OTHER_SHAPES)
    request = {
        "operator": op.name,
        "name": options.pop("name", None) or re.sub(r"[^A-Za-z0-9_.+-]", "_", name_of(fn)),
        "takes": sorted(caller.signature.of),
        "needs": caller.signature.needs,
        "lacks": lacks,
        "backend": f"vm {machine.gpu.arch}" if machine is not None else backend,
        "arch": machine.gpu.arch if machine is not None else "sm_90",
        **{key: value for key, value in options.items() if value is not None},
    }
    if arithmetic is not None:
        request["arithmetic"] = dict(arithmetic) if isinstance(arithmetic, Mapping) else arithmetic
    return request


def fuzz(
    op: str | Callable[..., Any],
    fn: Callable[..., Any] | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    reference: Callable[..., Any] | None = None,
    tolerance: float | Mapping[str, float] | None = None,
    elements: int = 1 << 16,
    checks: str = "all",
    repeats: bool = True,
    arithmetic: str | Mapping[str, Any] | None = None,
    time: float = 60.0,
    cases: int = 0,
    seed: int | None = None,
    directions: str | None = None,
    dtypes: Sequence[str] | None = None,
    gate_dtypes: Sequence[str] = ("fp32",),
    names: Mapping[str, str] | None = None,
    layout: str | Mapping[str, str] | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
    max_K: int = 256,
    max_V: int = 256,
    max_M: int = 128,
    gate_min: float = -1e4,
    cases_per_shape: int | None = None,
    across_shapes: bool = False,
    tensors: str | None = None,
    backend: str | None = None,
    arch: str = "sm_90",
    name: str | None = None,
    shrink: int = 60,
    jobs: int = 0,
    db: str | None = None,
    progress: Progress | None = None,
) -> Any:
    """Fuzzes a function that computes an operator: draws cases, calls the function for each, judges every element of
    what it returns, and of gradients by torch.autograd, against proved bounds, checks properties between runs, and
    shrinks what fails.

        assay.fuzz("gla", fn, arithmetic="triton-chunk", time=60)

    Where no operator fits, `assay.fuzz(fn, inputs={"x": assay.tensors(("B", "N"))}, reference=exact)` draws tensors,
    judges the launches whatever they compute (traps, checks, where values that are not finite were born, other orders of
    blocks, other bytes in unwritten memory), and holds outputs against the reference: what launches wrote on real
    numbers, where nothing rounds, or with `tolerance` as it is.

    Args:
        op: an operator (`assay list operators`), or a function that `assay.subject` decorates.
        inputs, reference, tolerance, elements, checks, repeats: without an operator: strategies by parameter
            (`assay.tensors`); a function of the same parameters in fp64, or None; of |expected| and of the output's root
            mean square, a number or one by format; most elements of an input; which checks; whether to repeat.
        fn: called with the operator's inputs by name, `scale`, `cu_seqlens` and other numbers, as far as it has
            parameters for them, and where these have defaults also without; returns the outputs in the operator's order (o, final_state), or by name in a dict; None
            for those that it does not give. ValueError, NotImplementedError, AssertionError and `assay.Refused` say
            that it does not take a case, and so does what Triton cannot compile. What else it raises is raised to you, or once it has taken a case, a finding; of
            tensors without elements it says that it does not take them.
        arithmetic: its declared arithmetic: a kernel of assay's that declares the same ("gla.fused_recurrent"), a
            preset ("triton-chunk", "triton-delta-chunk", "fp32-recurrent"), or numbers and expressions (`assay list arithmetic`), in which
            "backward" holds what gradients have otherwise; by itself the preset that fits what the launches do
            ("triton-chunk" or a delta rule's where they multiply matrices), else that of the operator's first kernel.
        time: seconds. cases: that many instead. seed: decides what is drawn; by itself another each time.
        directions: "forward", "backward", "both"; by itself both where the outputs carry gradients.
        dtypes, gate_dtypes: formats of values and of log decays.
        names: the operator's names to the function's, as in {"g": "gk"}.
        layout: "heads-first", or axes by tensor, as in {"q": "BHTK", "o": "BHTV"}.
        sizes: which to draw, as in {"K": [64, 128]}; max_K, max_V, max_M: up to which.
        gate_min: log decays are not below.
        cases_per_shape: cases in a row that share heads, widths and formats; by itself 8 on the machine, where new shapes
            are compiled anew.
        across_shapes: runs of other shapes and strides have the same bits (packed and alone, split and resumed).
        tensors: "torch" or "numpy"; by itself torch where that is imported.
        backend: "machine": Triton's launches run on the machine of `arch`, which is started where none is active;
            "both": there, and each launch on the GPU too, from the same bytes: twice as Triton's assembler makes it, once with
            every rounding kept apart; bits are compared (`.gpu` of the result, an `assay.GpuLaunches`), and what neither the
            assembler's contraction explains nor a second run repeats is a finding; "cuda": tensors on the GPU; "cpu". By itself the active machine, or the processor.
        shrink: verifications that a finding's shrinking may take; jobs: threads (the function runs in yours alone);
            db: file of findings and corpus.
    Returns:
        `.findings`, shrunk, one per cause; print() says what `assay fuzz` says. Without an operator a `FreeFuzz`.
    Raises:
        BadInput: one line: what does not fit.
        KeyboardInterrupt: Ctrl-C.
    """
    if isinstance(op, Subject) and fn is None:
        given = {key: value for key, value in locals().items() if key not in ("op", "fn")}
        merged = {**op.options, **{k: v for k, v in given.items() if v != _DEFAULTS.get(k)}}
        return fuzz(op.op, op.fn, **{"name": op.__name__, **merged})
    if callable(op) and fn is None and inputs is not None:
        from . import free

        return free.fuzz(
            op, inputs, reference, tolerance=tolerance, time=float(time), cases=int(cases), seed=seed, sizes=sizes,
            elements=elements, checks=checks, repeats=repeats, tensors=tensors, backend=backend, arch=arch, name=name,
            shrink=shrink, progress=progress,
        )
    if not isinstance(op, str):
        raise BadInput("fuzz: which operator? assay.fuzz(\"gla\", fn), or decorate the function with assay.subject")
    if not callable(fn):
        raise BadInput(f"fuzz: a function was expected, not {type(fn).__name__}")
    request = {
        "time": float(time),
        "cases": int(cases),
        "seed": random.getrandbits(63) if seed is None else int(seed),
        "directions": directions,
        "sizes": {axis: [int(n) for n in allowed] for axis, allowed in (sizes or {}).items()},
        "max_K": max_K,
        "max_V": max_V,
        "max_M": max_M,
        "gate_min": gate_min,
        "gate_dtypes": list(gate_dtypes),
        "shrink": shrink,
        "jobs": jobs,
        "db": db,
    }
    how = dict(
        arithmetic=arithmetic,
        across_shapes=across_shapes,
        name=name,
        dtypes=dtypes,
        cases_per_shape=cases_per_shape,
        names=names,
        layout=layout,
        tensors=tensors,
        backend=backend,
        arch=arch,
    )
    result, gpu = _call("fuzz", op, fn, request, how, progress)
    made = Fuzz.from_json(result)
    made.gpu = gpu.seen if gpu is not None else None  # type: ignore[attr-defined]
    return made


def replay(token: str, fn: Callable[..., Any], op: str | None = None, *, progress: Progress | None = None, **options: Any) -> Verification:
    """A case of a function again, from the token that `fuzz` gave, with every property; `op` and options as there."""
    if isinstance(fn, Subject):
        op, options, fn = op or fn.op, {"name": fn.__name__, **fn.options, **options}, fn.fn
    if op is None:
        raise BadInput("replay: which operator? assay.replay(token, fn, op=\"gla\")")
    unknown = [key for key in options if key not in _DEFAULTS]
    if unknown:
        raise BadInput(f"replay: {unknown[0]}: no option of assay.fuzz")
    how = {key: options.get(key, _DEFAULTS[key]) for key in _HOW}
    request = {"token": token, **{key: options.get(key, _DEFAULTS[key]) for key in ("directions", "max_K", "max_V", "max_M", "gate_min")}}
    request["gate_dtypes"] = list(options.get("gate_dtypes", _DEFAULTS["gate_dtypes"]))
    return Verification.from_json(_call("replay_function", op, fn, request, how, progress)[0])


#: Options of how a function is called; the others say what is drawn.
_HOW = (
    "arithmetic", "across_shapes", "name", "dtypes", "cases_per_shape", "names", "layout", "tensors", "backend", "arch",
)


def _call(
    operation: str, op: str, fn: Callable[..., Any], request: dict[str, Any], how: dict[str, Any], progress: Progress | None
) -> Any:
    with on_backend(how["backend"], how["arch"]) as (where, gpu):
        about = Operator(op)
        kind = tensors_for(how["tensors"], where)
        caller = Caller(fn, about, how["names"] or {}, how["layout"] or "", kind)
        request = _request(about, caller, fn, where, {**request, **{key: how[key] for key in ("arithmetic", "across_shapes", "name")}})
        request["dtypes"] = list(how["dtypes"] or (("fp32", "fp16") if isinstance(kind, InNumpy) else ("bf16", "fp16", "fp32")))
        request["cases_per_shape"] = how["cases_per_shape"] or (8 if where == "machine" else 1)
        value = _engine.call_function(operation, request, caller.serve, progress=progress).value
    notes = [*value["notes"], *(f"{count} cases not taken: {why}" for why, count in caller.refused.items())]
    notes += [str(gpu.seen)] if gpu is not None else []
    for note in notes:
        warnings.warn(f"{request['name']}: {note}", stacklevel=4)
    return value["result"], gpu


_DEFAULTS = {
    key: p.default for key, p in inspect.signature(fuzz).parameters.items() if p.default is not inspect.Parameter.empty
}
