"""What is kept of a launch."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


@dataclass
class Launch:
    """One launch of a kernel on the machine.

    `kernel`: the Python function's name; `signature`: argument name to Triton's type, constants as "name=value";
    `grid`, `block`, `cluster`: blocks, threads, blocks of a cluster; `stack`: (file, line, function) of the
    program's own frames, outermost first; `lane_instructions`, `seconds`: of the machine; `printed`: lines of
    device_print; `trap`: why it did not complete, or None; `verification`: what the checks said, or None;
    `exponents`: arguments of exponentials, by source line.
    """

    number: int
    kernel: str
    entry: str
    signature: dict
    grid: tuple
    block: tuple
    cluster: tuple | None
    shared_bytes: int
    arch: str
    stack: list
    configuration: str = ""
    lane_instructions: int = 0
    seconds: float = 0.0
    printed: list = field(default_factory=list)
    trap: object = None
    verification: object = None
    exponents: list = field(default_factory=list)
    error: str = ""

    @property
    def finding(self) -> bool:
        """Whether the kernel trapped, or a check found something."""
        verdict = getattr(self.verification, "verdict", None)
        return self.trap is not None or verdict not in (None, "pass")

    @property
    def where(self) -> str:
        """"file:line" of the program's innermost frame: where the launch is written."""
        return "%s:%d" % self.stack[-1][:2] if self.stack else "?"

    def text(self) -> str:
        """One paragraph: the launch, where it is written, and what was found."""
        lines = [f"launch {self.number} of {self.kernel} on grid {self.grid}, {self.block[0]} threads, {self.arch}"]
        if self.configuration:
            lines[0] += f" ({self.configuration})"
        lines += [f"  launched at {file}:{line} in {function}" for file, line, function in reversed(self.stack[-3:])]
        if self.error:
            lines.append("  " + self.error)
        elif self.verification is not None and self.finding:
            lines += ["  " + line for line in self.verification.text().rstrip().splitlines()]
        elif self.trap is not None:
            lines.append("  " + trap_text(self.trap))
        return "\n".join(lines)


def trap_text(trap) -> str:
    """"out-of-bounds at kernel.py:12: ...", in one line."""
    where = trap.where
    place = f" at {where.file}:{where.line}" if getattr(where, "line", 0) else ""
    return f"{trap.kind}{place}: {trap.message}, block {tuple(trap.block)}, thread {tuple(trap.thread)}"


_OURS = ("assay.", "triton.", "torch.utils._", "torch.autograd.", "torch._dynamo", "torch._ops", "torch.nn.modules.")
#: Who calls the program.
_CALLERS = ("_pytest.", "pytest.", "pluggy.", "xdist.", "execnet.", "runpy.", "unittest.", "concurrent.futures.", "threading.")


def program_stack(depth: int = 40) -> list:
    """The calling program's frames, outermost first, without those of Triton, torch and this package, and without
    a library's own class of kernels that hands on to Triton's."""
    from triton.runtime.jit import KernelInterface

    frames, frame = [], sys._getframe(1)
    while frame is not None and len(frames) < depth:
        module = frame.f_globals.get("__name__", "")
        if module == "__channelexec__":  # a worker of pytest-xdist: what called it is execnet's
            break
        if module == "__main__":  # `python -m pytest` is pytest's
            module = frame.f_globals.get("__package__") or module
        hands_on = frame.f_code.co_name == "run" and isinstance(frame.f_locals.get("self"), KernelInterface)
        if not (module + ".").startswith(_OURS + _CALLERS) and not hands_on:
            frames.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames[::-1]
