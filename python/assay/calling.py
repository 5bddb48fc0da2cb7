"""How an operator's function is called: names, layouts, gradients."""
from __future__ import annotations

import inspect
import re
import time as clock
from typing import Any, Callable, Mapping, Sequence

from . import _engine, _tensors, program_arithmetic
from .case_tensors import InTorch
from .errors import BadInput, Refused
from .function_run import failed, watched

_PACKED = "cu_seqlens"


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
                raise BadInput(f"names: {name_of(fn)} has no parameter {called}")
            elif name in op.inputs and name not in op.optional:
                raise BadInput(
                    f"{name_of(fn)}: no parameter for {op.name}'s {name}; it has {', '.join(own)}: "
                    f"say which, as in names={{\"{name}\": \"..\"}}"
                )
        called = set(self.of.values())
        without_default = {name for name, p in own.items() if p.default is p.empty}
        self.needs = sorted(name for name, called in self.of.items() if called in without_default)
        strange = [name for name, p in own.items() if p.default is p.empty and name not in called]
        if strange:
            raise BadInput(f"{name_of(fn)}: {op.name} has nothing for its parameter {strange[0]}: give it a default")


def name_of(fn: Callable[..., Any]) -> str:
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
        with watched(run) as watch:
            try:
                given = self._given(run)
                outputs = self._called(run, given)
            except BaseException as error:
                empty = any(0 in array.shape[: array.rank] for array in run.inputs)
                said = failed(error, watch, self.succeeded, empty)
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
            said |= program_arithmetic.of(self.op.name, watch.modules if watch else [])
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
        if run.request["what"] == "probe" and isinstance(self.tensors, InTorch):
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
            raise BadInput(f"{name_of(self.fn)}: it returned nothing; {self.op.name} has {', '.join(names)}")
        if isinstance(returned, Mapping):
            for name in returned:
                if name not in names:
                    raise BadInput(f"{name_of(self.fn)}: it returned {name}; {self.op.name} has {', '.join(names)}")
            found = dict(returned)
        else:
            listed = list(returned) if isinstance(returned, (tuple, list)) else [returned]
            if len(listed) > len(names) and any(value is not None for value in listed[len(names) :]):
                raise BadInput(
                    f"{name_of(self.fn)}: it returned {len(listed)} values; {self.op.name} has {', '.join(names)}: "
                    "return them alone, or by name"
                )
            found = dict(zip(names, listed))
        for name, value in found.items():
            if value is not None and not self.tensors.is_tensor(value):
                raise BadInput(f"{name_of(self.fn)}: {name} is a {type(value).__name__}, no tensor")
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
                raise BadInput(f"{name_of(self.fn)}: {name} carries no gradient")
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
        return _tensors.kept_array(name, self.tensors.host(value), name_of(self.fn))
