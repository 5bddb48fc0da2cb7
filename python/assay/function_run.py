"""A run of a user's function: on which backend, what it spent on the machine, what its failure means."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator

from . import _engine
from .errors import BadInput, Refused
from .machine import Launching, Module, watchers

#: What a function raises for a case that it does not take.
REFUSALS = (Refused, ValueError, NotImplementedError, AssertionError)


def failed(error: BaseException, watch: Any, succeeded: bool, empty: bool = False) -> dict[str, Any] | None:
    """What is said of a run that raised; None: it is raised to the caller, as before a first run has succeeded. `empty`: it has a
    tensor without elements, which programs refuse by whatever their first reshape raises."""
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
    if empty:
        return {"refused": f"a tensor without elements: {type(error).__name__}: {_line(error)}"}
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


class Watch:
    """One run on the machine: what it spent, and where the engine wants launches, those."""

    def __init__(self, machine: Any, run: _engine.Run):
        self.machine, self._before = machine, machine.lane_instructions
        self.recorder = run if run.request["what"] == "launches" else None
        self.modules: list[Module] = []  # of the launches so far

    def before(self, launch: Launching) -> None:
        if launch.module not in self.modules:
            self.modules.append(launch.module)

    @property
    def spent(self) -> int:
        return int(self.machine.lane_instructions - self._before)

    def trap(self, error: BaseException) -> dict[str, Any] | None:
        launch = getattr(error, "launch", None)
        found = getattr(launch, "trap", None)
        return found.to_json() if found is not None else None


@contextlib.contextmanager
def watched(run: _engine.Run) -> Iterator[Watch | None]:
    """The machine, where Triton's launches run on it."""
    session = sys.modules.get("assay.triton.session")
    machine = session.active() if session is not None else None
    if machine is None:
        yield None
        return
    watch = Watch(machine, run)
    found, checks = len(machine.findings), machine.checks
    machine.recorder, machine.checks = watch.recorder, "none"
    probing = [watch] if run.request["what"] == "probe" else []
    watchers.extend(probing)
    try:
        yield watch
    finally:
        for each in probing:
            watchers.remove(each)
        machine.recorder, machine.checks = None, checks
        del machine.findings[found:]  # they are the result's


@contextlib.contextmanager
def on_backend(backend: str | None, arch: str) -> Iterator[tuple[str, Any]]:
    """The backend that is meant, the machine started where it is asked for and none runs; for "both" also what tells of the GPU's
    launches (on_gpu.OnGpu), else None."""
    session = sys.modules.get("assay.triton.session")
    active = session.active() if session is not None else None
    if backend not in (None, "machine", "cuda", "both", "cpu"):
        raise BadInput(f"backend: {backend}: machine, cuda, both or cpu")
    if backend == "both":
        from .on_gpu import OnGpu

        gpu = OnGpu(arch=active.gpu.arch if active is not None else arch)
        with on_backend("machine", arch):
            watchers.append(gpu)
            try:
                yield "machine", gpu
            finally:
                watchers.remove(gpu)
        return
    if backend == "machine" and active is None:
        from .triton import machine

        try:
            with machine(arch):
                yield "machine", None
        except RuntimeError as error:
            raise BadInput(str(error)) from None
        return
    if backend == "cuda" and active is not None:
        raise BadInput("backend: cuda, and Triton's machine is active: leave its `with`, or fuzz on the machine")
    yield backend or ("machine" if active is not None else "cpu"), None
