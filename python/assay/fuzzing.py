"""Functions under fuzzing: what a library's Python function makes of an operator's cases, judged against proved bounds."""
from __future__ import annotations

import contextlib
import ctypes
import inspect
import random
import re
import sys
import time as clock
import warnings
from typing import Any, Callable, Iterator, Mapping, Sequence

from . import _engine, _tensors
from ._engine import Progress
from .errors import BadInput, Refused
from .results import Fuzz, Verification

_PACKED = "cu_seqlens"
#: Bits of runs of other shapes and strides: what chooses its kernels by these promises none of them.
_OF_OTHER_SHAPES = (
    "split-and-resume",
    "packed-equals-separate",
    "absent-equals-zero-gate",
    "absent-equals-zero-state",
    "absent-equals-zero-cotangent",
    "strided-equals-dense",
)
#: What a function raises for a case that it does not take.
REFUSALS = (Refused, ValueError, NotImplementedError, AssertionError)


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


class Operator:
    """An operator's arguments: (name, axes) of inputs and outputs, names of parameters."""

    def __init__(self, name: str):
        about = _engine.call("operator", {"name": name}).value
        self.name = name
        self.inputs: dict[str, list[str]] = {row["name"]: row["axes"] for row in about["inputs"]}
        self.outputs: dict[str, list[str]] = {row["name"]: row["axes"] for row in about["outputs"]}
        self.optional = {row["name"] for row in about["inputs"] if row["optional"]}
        self.numbers: list[str] = about["parameters"] + (["scale"] if about["takes_scale"] else [])


class Signature:
    """How a function is called: `of` is the operator's name to the function's."""

    def __init__(self, fn: Callable[..., Any], op: Operator, names: Mapping[str, str]):
        known = [*op.inputs, *op.numbers, _PACKED]
        for name in names:
            if name not in known:
                raise BadInput(f"names: {op.name} has no argument {name}; it has {', '.join(known)}")
        self.of: dict[str, str] = {}
        self.needs: list[str] = []
        try:
            parameters = inspect.signature(fn).parameters.values()
        except (TypeError, ValueError):  # of a builtin
            self.of = {name: names.get(name, name) for name in known}
            return
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        own = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        for name in known:
            called = names.get(name, name)
            if called in own or takes_all:
                self.of[name] = called
            elif name in names:
                raise BadInput(f"names: {_name_of(fn)} has no parameter {called}")
            elif name in op.inputs and name not in op.optional:
                raise BadInput(
                    f"{_name_of(fn)}: no parameter for {op.name}'s {name}; it has {', '.join(own)}: "
                    f"say which, as in names={{\"{name}\": \"..\"}}"
                )
        called = set(self.of.values())
        without_default = {name for name, p in own.items() if p.default is p.empty}
        self.needs = sorted(name for name, called in self.of.items() if called in without_default)
        strange = [name for name, p in own.items() if p.default is p.empty and name not in called]
        if strange:
            raise BadInput(f"{_name_of(fn)}: {op.name} has nothing for its parameter {strange[0]}: give it a default")


def _name_of(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _order(layout: Any, name: str, axes: Sequence[str]) -> list[int] | None:
    """Where each axis of the function's tensor is among the operator's; None: the same order."""
    asked = layout.get(name, layout.get("", "")) if isinstance(layout, Mapping) else layout
    if not asked or asked == "tokens-first":
        return None
    letters = list(axes)
    if asked == "heads-first":
        heads = [a for a in letters if a in ("H", "HV", "HQ")]
        if "T" not in letters or not heads:
            return None
        wanted = [a for a in letters if a not in heads]
        wanted[wanted.index("T") : wanted.index("T")] = heads
    else:
        wanted = list(asked) if isinstance(asked, (list, tuple)) else _letters(str(asked))
        if sorted(wanted) != sorted(letters):
            raise BadInput(f"layout of {name}: {asked}: its axes are {''.join(letters)}, in another order")
    order = [letters.index(a) for a in wanted]
    return None if order == list(range(len(order))) else order


def _letters(text: str) -> list[str]:
    return re.findall(r"HV|HQ|[A-Z]", text)


class _Torch:
    """Cases as tensors of PyTorch."""

    def __init__(self, torch: Any, device: str):
        self.torch, self.device = torch, device

    def of(self, array: _engine.Array, name: str) -> Any:
        """A copy, with the strides that the case gives it."""
        torch = self.torch
        dtype = {
            "fp64": torch.float64,
            "fp32": torch.float32,
            "fp16": torch.float16,
            "bf16": torch.bfloat16,
            "i64": torch.int64,
            "i32": torch.int32,
        }[_tensors.FORMATS[array.format]]
        rank = array.rank
        shape, strides = tuple(array.shape[:rank]), tuple(array.strides[:rank])
        host = torch.empty(array.bytes, dtype=torch.uint8)
        if array.bytes:
            ctypes.memmove(host.data_ptr(), array.address, array.bytes)
        storage = host.to(self.device) if self.device != "cpu" else host
        return torch.as_strided(storage.view(dtype), shape, strides, array.offset)

    def changed(self, tensor: Any, array: _engine.Array) -> None:
        """What the function left of an input, to the engine, where that is another."""
        if not array.bytes:
            return
        storage = tensor.detach().as_strided((array.bytes // tensor.element_size(),), (1,), 0)
        host = storage.contiguous().cpu()
        ctypes.memmove(array.address, host.data_ptr(), array.bytes)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self.torch.Tensor)

    def permuted(self, tensor: Any, order: Sequence[int]) -> Any:
        return tensor.permute(*order).contiguous()

    def back(self, tensor: Any, order: Sequence[int]) -> Any:
        return tensor.permute(*[order.index(i) for i in range(len(order))])

    def host(self, tensor: Any) -> Any:
        return tensor.detach().cpu() if _tensors._device_of_torch(tensor).type != "cpu" else tensor.detach()


class _Numpy:
    """Cases as arrays of NumPy; no bf16."""

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy
        self._storages: dict[str, Any] = {}

    def of(self, array: _engine.Array, name: str) -> Any:
        names = {"fp64": "f8", "fp32": "f4", "fp16": "f2", "i64": "i8", "i32": "i4"}
        kind = self.numpy.dtype(names[_tensors.FORMATS[array.format]])
        storage = self.numpy.empty(array.bytes // kind.itemsize, kind)
        if array.bytes:
            ctypes.memmove(storage.ctypes.data, array.address, array.bytes)
        self._storages[name] = storage
        rank = array.rank
        strides = [step * kind.itemsize for step in array.strides[:rank]]
        return self.numpy.lib.stride_tricks.as_strided(storage[array.offset :], array.shape[:rank], strides)

    def changed(self, tensor: Any, array: _engine.Array) -> None:
        if array.bytes:
            ctypes.memmove(array.address, self._storages[array.name.decode()].ctypes.data, array.bytes)

    def is_tensor(self, value: Any) -> bool:
        return hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")

    def permuted(self, tensor: Any, order: Sequence[int]) -> Any:
        return self.numpy.ascontiguousarray(tensor.transpose(order))

    def back(self, tensor: Any, order: Sequence[int]) -> Any:
        return self.numpy.asarray(tensor).transpose([order.index(i) for i in range(len(order))])

    def host(self, tensor: Any) -> Any:
        return tensor


class Caller:
    """Calls the function for each run that the engine asks for."""

    def __init__(self, fn: Callable[..., Any], op: Operator, names: Mapping[str, str], layout: Any, tensors: Any):
        self.fn, self.op, self.layout, self.tensors = fn, op, layout, tensors
        self.signature = Signature(fn, op, names)
        self.succeeded = False
        self.refused: dict[str, int] = {}

    def serve(self, run: _engine.Run) -> dict[str, Any]:
        request = run.request
        before = clock.perf_counter()
        with _watched(run) as watch:
            try:
                given = self._given(run)
                outputs = self._called(run, given)
            except BaseException as error:
                said = failed(error, watch, self.succeeded)
                if said is None:
                    raise
                if "refused" in said:
                    self.refused[said["refused"]] = self.refused.get(said["refused"], 0) + 1
                return said
            arrays = [self._array(name, value) for name, value in outputs.items()]
            for array in arrays:
                run.output(array)
        said = {"seconds": clock.perf_counter() - before, "lane_instructions": watch.spent if watch else 0}
        if request["what"] == "probe":
            said["differentiable"] = any(getattr(value, "requires_grad", False) for value in outputs.values())
        self.succeeded = True
        return said

    def _given(self, run: _engine.Run) -> dict[str, Any]:
        """The case's tensors, by the operator's names."""
        return {array.name.decode(): self.tensors.of(array, array.name.decode()) for array in run.inputs}

    def _called(self, run: _engine.Run, given: dict[str, Any]) -> dict[str, Any]:
        """The outputs and gradients that are asked for, as far as the function gives them; inputs that it has
        changed go back to the engine."""
        wanted: list[str] = run.request["outputs"]
        gradients = [name for name in wanted if name not in self.op.outputs]
        differentiated = [name[1:] for name in gradients]
        if run.request["what"] == "probe" and isinstance(self.tensors, _Torch):
            differentiated = [name for name in self.op.inputs if name in given]
        leaves: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for name, tensor in given.items():
            if name in self.op.inputs or name == _PACKED:
                order = _order(self.layout, name, self.op.inputs.get(name, []))
                values[name] = tensor if order is None else self.tensors.permuted(tensor, order)
                if name in differentiated:
                    values[name].requires_grad_()
                    leaves[name] = values[name]
        if run.request["what"] == "launches":
            self._tell_names(run, values)
        keywords = {self.signature.of[name]: value for name, value in values.items()}
        for name, number in run.request["numbers"].items():
            if name in self.signature.of:
                keywords[self.signature.of[name]] = int(number) if name != "scale" and number == int(number) else number
        outputs = self._outputs(self.fn(**keywords))
        if gradients:
            outputs |= self._gradients(given, outputs, leaves)
        if run.request["what"] == "launches":
            self._tell_names(run, outputs)
        for array in run.inputs:
            self.tensors.changed(given[array.name.decode()], array)
        return {
            name: self._in_order(name, value)
            for name, value in outputs.items()
            if name in wanted and value is not None
        }

    def _outputs(self, returned: Any) -> dict[str, Any]:
        names = list(self.op.outputs)
        if returned is None:
            raise BadInput(f"{_name_of(self.fn)}: it returned nothing; {self.op.name} has {', '.join(names)}")
        if isinstance(returned, Mapping):
            for name in returned:
                if name not in names:
                    raise BadInput(f"{_name_of(self.fn)}: it returned {name}; {self.op.name} has {', '.join(names)}")
            found = dict(returned)
        else:
            listed = list(returned) if isinstance(returned, (tuple, list)) else [returned]
            if len(listed) > len(names) and any(value is not None for value in listed[len(names) :]):
                raise BadInput(
                    f"{_name_of(self.fn)}: it returned {len(listed)} values; {self.op.name} has {', '.join(names)}: "
                    "return them alone, or by name"
                )
            found = dict(zip(names, listed))
        for name, value in found.items():
            if value is not None and not self.tensors.is_tensor(value):
                raise BadInput(f"{_name_of(self.fn)}: {name} is a {type(value).__name__}, no tensor")
        return found

    def _gradients(self, given: dict[str, Any], outputs: dict[str, Any], leaves: dict[str, Any]) -> dict[str, Any]:
        torch = self.tensors.torch
        ends, cotangents = [], []
        for name in self.op.outputs:
            cotangent, value = given.get("d" + name), outputs.get(name)
            if cotangent is None:
                continue
            if value is None or not value.requires_grad:
                if value is None:
                    raise Refused(f"{name} is not returned, and the case has a gradient of it")
                raise BadInput(f"{_name_of(self.fn)}: {name} carries no gradient")
            order = _order(self.layout, name, self.op.outputs[name])
            cotangent = cotangent if order is None else self.tensors.permuted(cotangent, order)
            ends.append(value)
            cotangents.append(cotangent.to(value.dtype))
        found = torch.autograd.grad(ends, list(leaves.values()), cotangents, allow_unused=True)
        return {"d" + name: gradient for name, gradient in zip(leaves, found)}

    def _in_order(self, name: str, value: Any) -> Any:
        axes = self.op.outputs.get(name) or self.op.inputs.get(name[1:], [])
        order = _order(self.layout, name if name in self.op.outputs else name[1:], axes)
        return value if order is None or len(order) != value.ndim else self.tensors.back(value, order)

    def _tell_names(self, run: _engine.Run, values: Mapping[str, Any]) -> None:
        """What the function's own tensors are called, their axes in its order."""
        for name, value in values.items():
            if value is None:
                continue
            array = self._array(name, value)
            of = name if name in self.op.inputs or name in self.op.outputs else name[1:]
            axes = self.op.inputs.get(of) or self.op.outputs.get(of) or []
            order = _order(self.layout, of, axes)
            if len(axes) == array.rank:
                array.axes = ",".join(axes if order is None else [axes[i] for i in order]).encode()
            run.named(array)

    def _array(self, name: str, value: Any) -> _engine.Array:
        host = self.tensors.host(value)
        try:
            at = _tensors.lies(host)
            array = _tensors.array_of(
                name, at.address, at.nbytes, format=at.format, shape=at.shape, strides=at.strides, offset=at.offset
            )
        except BadInput as error:
            raise BadInput(f"{_name_of(self.fn)}: {name}: {error}") from None
        array.keep = host
        return array


def failed(error: BaseException, watch: Any, succeeded: bool) -> dict[str, Any] | None:
    """What is said of a run that raised; None: it is raised to the caller, as before a first run has succeeded."""
    if not isinstance(error, Exception):
        return None
    spent = {"lane_instructions": watch.spent if watch else 0}
    trap = watch.trap(error) if watch is not None else None
    if trap is not None:
        return {"trap": trap, **spent}
    if isinstance(error, (Refused, _engine.OverBudget)):
        return {"refused": _line(error)}
    if isinstance(error, REFUSALS) or type(error).__module__ == "triton.compiler.errors":
        return {"refused": f"{type(error).__name__}: {_line(error)}"}
    if not succeeded:
        return None
    file, line, function = _innermost(error)
    where = {"file": file, "line": line, "ptx_line": 0, "function": function, "frames": None}
    message = f"{type(error).__name__}: {_line(error)}"
    return {"trap": {"kind": "raised", "message": message, "where": where, "block": [0, 0, 0], "thread": [0, 0, 0]}, **spent}


def _line(error: BaseException) -> str:
    """Its message in one line; of many lines the first and the last."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    text = lines[0] if len(lines) == 1 else f"{lines[0]} .. {lines[-1]}" if lines else ""
    return text[:400]


#: Not the program's own.
_OTHERS = ("assay.", "triton.", "torch.", "numpy.")


def _innermost(error: BaseException) -> tuple[str, int, str]:
    """(file, line, function) of the program's own innermost frame."""
    trace, found = error.__traceback__, ("", 0, "")
    while trace is not None:
        code, module = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__", "")
        if not (module + ".").startswith(_OTHERS):
            found = (code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return found


class _Watch:
    """One run on the machine: what it spent, and where the engine wants launches, those."""

    def __init__(self, machine: Any, run: _engine.Run):
        self.machine, self._before = machine, machine.lane_instructions
        self.recorder = run if run.request["what"] == "launches" else None

    @property
    def spent(self) -> int:
        return int(self.machine.lane_instructions - self._before)

    def trap(self, error: BaseException) -> dict[str, Any] | None:
        launch = getattr(error, "launch", None)
        found = getattr(launch, "trap", None)
        return found.to_json() if found is not None else None


@contextlib.contextmanager
def _watched(run: _engine.Run) -> Iterator[_Watch | None]:
    """The machine, where Triton's launches run on it."""
    session = sys.modules.get("assay.triton.session")
    machine = session.active() if session is not None else None
    if machine is None:
        yield None
        return
    watch = _Watch(machine, run)
    found, checks = len(machine.findings), machine.checks
    machine.recorder, machine.checks = watch.recorder, "none"
    try:
        yield watch
    finally:
        machine.recorder, machine.checks = None, checks
        del machine.findings[found:]  # they are the result's


def _tensors_for(kind: str | None, backend: str) -> Any:
    torch = sys.modules.get("torch")
    if kind is None:
        kind = "torch" if torch is not None else "numpy"
    if kind == "numpy":
        return _Numpy()
    if kind != "torch":
        raise BadInput(f"tensors: {kind}: torch or numpy")
    import torch

    return _Torch(torch, "cuda" if backend in ("machine", "cuda") else "cpu")


@contextlib.contextmanager
def _on(backend: str | None, arch: str) -> Iterator[str]:
    """The backend that is meant, the machine started where it is asked for and none runs."""
    session = sys.modules.get("assay.triton.session")
    active = session.active() if session is not None else None
    if backend not in (None, "machine", "cuda", "cpu"):
        raise BadInput(f"backend: {backend}: machine, cuda or cpu")
    if backend == "machine" and active is None:
        from .triton import machine

        try:
            with machine(arch):
                yield "machine"
        except RuntimeError as error:
            raise BadInput(str(error)) from None
        return
    if backend == "cuda" and active is not None:
        raise BadInput("backend: cuda, and Triton's machine is active: leave its `with`, or fuzz on the machine")
    yield backend or ("machine" if active is not None else "cpu")


def _request(op: Operator, caller: Caller, fn: Callable[..., Any], backend: str, options: dict[str, Any]) -> dict[str, Any]:
    session = sys.modules.get("assay.triton.session")
    machine = session.active() if session is not None else None
    arithmetic = options.pop("arithmetic", None)
    lacks = [] if options.pop("across_shapes", False) else list(_OF_OTHER_SHAPES)
    request = {
        "operator": op.name,
        "name": options.pop("name", None) or re.sub(r"[^A-Za-z0-9_.+-]", "_", _name_of(fn)),
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
            that it does not take a case, and so does what Triton cannot compile. What else it raises is raised to you, or once it has taken a case, a finding.
        arithmetic: its declared arithmetic: a kernel of assay's that declares the same ("gla.fused_recurrent"), a
            preset ("triton-chunk", "fp32-recurrent"), or numbers and expressions (`assay list arithmetic`), in which
            "backward" holds what gradients have otherwise; by itself that of the operator's first kernel.
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
            "cuda": tensors on the GPU; "cpu". By itself the active machine, or the processor.
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
    return Fuzz.from_json(_call("fuzz", op, fn, request, how, progress))


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
    return Verification.from_json(_call("replay_function", op, fn, request, how, progress))


#: Options of how a function is called; the others say what is drawn.
_HOW = (
    "arithmetic", "across_shapes", "name", "dtypes", "cases_per_shape", "names", "layout", "tensors", "backend", "arch",
)


def _call(
    operation: str, op: str, fn: Callable[..., Any], request: dict[str, Any], how: dict[str, Any], progress: Progress | None
) -> Any:
    with _on(how["backend"], how["arch"]) as where:
        about = Operator(op)
        kind = _tensors_for(how["tensors"], where)
        caller = Caller(fn, about, how["names"] or {}, how["layout"] or "", kind)
        request = _request(about, caller, fn, where, {**request, **{key: how[key] for key in ("arithmetic", "across_shapes", "name")}})
        request["dtypes"] = list(how["dtypes"] or (("fp32", "fp16") if isinstance(kind, _Numpy) else ("bf16", "fp16", "fp32")))
        request["cases_per_shape"] = how["cases_per_shape"] or (8 if where == "machine" else 1)
        value = _engine.call_function(operation, request, caller.serve, progress=progress).value
    notes = [*value["notes"], *(f"{count} cases not taken: {why}" for why, count in caller.refused.items())]
    for note in notes:
        warnings.warn(f"{request['name']}: {note}", stacklevel=4)
    return value["result"]


_DEFAULTS = {
    key: p.default for key, p in inspect.signature(fuzz).parameters.items() if p.default is not inspect.Parameter.empty
}
