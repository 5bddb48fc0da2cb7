"""A capture that waits for the first output that is not finite, on a GPU: outputs are judged on the device behind each launch, with
one flag; what a launch had is kept there if the flag says so, and read when the host sees that."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import deque, namedtuple

from assay import _tensors, cuda_driver, machine, stacks
from assay.triton import judging, taps

_ALIGNED = 512
#: Streams at most, each with a count of its own; launches with other tensors whose tables are kept.
_STREAMS, _PLANS = 1024, 4096
#: Launches that are remembered behind what the device has told of: another stream's may not be done.
_BEHIND = 256

class _Kept(machine.Storage):
    """A storage of the launch that triggered: `read` gives what it held before, then (`turned`) after."""

    __slots__ = ("before", "behind", "turned")

    def read(self):
        return self.behind if self.turned else self.before


class _Plan:
    """Launches of a kernel on one stream with the same tensors. `storages`: (address, bytes, name, format, shape, strides, offset, where
    the bytes before and after lie in the arena, or None); `addresses`: of pointers, by place; `copies` before the launch: (to, from, bytes)."""

    __slots__ = ("addresses", "storages", "copies", "judgement", "arena", "scratch")


#: A launch of which the device has not told yet. `scalars`: its arguments that are no pointers.
Pending = namedtuple("Pending", "number kernel grid scalars plan stack")


class Armed:
    """`found(Pending, Launching, stack)` is called in the launching thread when a launch has triggered, and says whether that is what was
    waited for; stack: (code's file, line, function, module), innermost first. If not (what is not finite was there before) further
    launches are judged; those that had been made meanwhile are not."""

    def __init__(self, found, driver=None):
        self._found, self._driver = found, driver
        self._state = None
        self._lock = threading.Lock()

    def start(self, torch):
        self._torch = torch
        driver = self._driver or cuda_driver.opened()
        self._driver = driver
        driver.enter()
        self._flag = torch.zeros(4 + _STREAMS, dtype=torch.int32, device="cuda")
        self._host = torch.zeros(4, dtype=torch.int32, pin_memory=driver.pins)
        self._words = (ctypes.c_uint32 * 2).from_address(self._host.data_ptr())
        self._judge = judging.Judge(driver, self._flag.data_ptr(), self._host.data_ptr())
        self._arena, self._streams, self._plans = None, {}, {}
        self._pending = deque()
        self._gather, self._told_by_torch = _stacks(torch)
        self._state = "armed"

    def around(self, number, kernel, grid, stream, values, run):
        """Launches, and judges what it wrote. Raises taps.CannotKeep, before the launch."""
        key = [stream, kernel]
        for at in kernel.places:
            value = values[at]
            try:
                storage = value.untyped_storage()
                key += (value.data_ptr(), storage.data_ptr(), storage.nbytes(), value.dtype, value.shape, value.stride())
            except AttributeError:
                key += _of_no_tensor(value)
        key = tuple(key)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(key, stream, kernel, values)
        stack = self._gather()
        with self._lock:
            for to, address, nbytes in plan.copies:
                self._driver.copy(to, address, nbytes, stream)
            result = run()
            plan.judgement.launch(number)
            self._pending.append(Pending(number, kernel, grid, kernel.scalars(values), plan, stack))
            self.look()
        return result

    def _plan(self, key, stream, kernel, values):
        plan = _Plan()
        plan.addresses, plan.storages = {}, []
        found = self._storages(plan, kernel, values)
        with self._lock:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            rows, copies, arena, scratch = self._rows(plan, found)
            if len(rows) > judging.MOST:
                raise taps.CannotKeep(f"more than {judging.MOST} tensors")
            count, from_ = self._of_stream(stream, scratch)
            self._arena = _larger(self._torch, self._arena, arena)
            plan.arena, plan.scratch = self._arena, from_
            for row in rows:
                if row[2] is not None:
                    row[2] += plan.arena.data_ptr()
                if row[0]:
                    row[1] += from_.data_ptr()
            plan.copies = [(from_.data_ptr() + to, address, nbytes) for address, to, nbytes in copies]
            plan.judgement = self._judge.prepared([(*row[:2], row[2] or 0, *row[3:]) for row in rows], count, stream)
            self._plans[key] = plan
        return plan

    def _of_stream(self, stream, scratch):
        """(address of its count, memory for what launches read and write), which no other stream has."""
        index, memory = self._streams.get(stream, (len(self._streams), None))
        if index >= _STREAMS:
            raise taps.CannotKeep(f"more than {_STREAMS} streams")
        memory = _larger(self._torch, memory, scratch)
        self._streams[stream] = index, memory
        return self._flag.data_ptr() + 16 + 4 * index, memory

    @staticmethod
    def _storages(plan, kernel, values):
        """address -> [tensor, is it read, is it written, bytes, name]."""
        found = {}
        for at, place, name, reads, writes in kernel.pointers:
            value = values[at]
            tensor = getattr(value, "base", value) if type(value).__name__ == "TensorWrapper" else value
            try:
                storage = tensor.untyped_storage()
            except AttributeError:
                if value is None or value == 0:
                    plan.addresses[place] = 0
                    continue
                raise taps.CannotKeep(f"{name} is no tensor") from None
            plan.addresses[place] = tensor.data_ptr() if tensor is value else value.data_ptr()
            address = storage.data_ptr()
            if address % 16:  # of vectors of the judge
                raise taps.CannotKeep(f"{name} lies at an address that is no multiple of 16")
            row = found.get(address)
            if row is not None:
                row[1] |= reads
                row[2] |= writes
            elif nbytes := storage.nbytes():
                found[address] = [tensor, reads, writes, nbytes, name]
        return found

    @staticmethod
    def _rows(plan, found):
        """(rows of the judge, copies to the scratch memory before the launch, bytes of the arena, of the scratch memory)."""
        rows, copies, at, scratch = [], [], 0, 0
        for address, (tensor, is_read, is_written, nbytes, name) in found.items():
            dtype = _tensors.format_name(tensor.dtype)
            room = (nbytes + _ALIGNED - 1) // _ALIGNED * _ALIGNED
            before = behind = None
            if not is_written:
                before, at = at, at + room
                rows.append([False, address, before, nbytes, ""])
            else:
                if is_read:
                    copies.append((address, scratch, nbytes))
                    before, at = at, at + room
                    rows.append([True, scratch, before, nbytes, ""])
                    scratch += room
                behind, at = at, at + room
                rows.append([False, address, behind, nbytes, dtype or ""])
            plan.storages.append((address, nbytes, name, dtype, tensor.shape, tensor.stride(), tensor.storage_offset(), before, behind))
        return rows, copies, at, scratch

    def look(self, wait=False):
        """What the device has told; `wait`: once all launches are done."""
        if self._state != "armed":
            return
        if wait:
            self._torch.cuda.synchronize()
        flag, done = self._words
        if flag:
            self._torch.cuda.synchronize()
            if any([self._write(pending) for pending in self._pending if pending.number == flag]):
                self._state = "triggered"
            else:
                self._flag[:1].zero_()
                self._torch.cuda.synchronize()
                self._words[:] = 0, 0
            self._pending.clear()
        elif wait:
            self._pending.clear()
        elif self._pending[0].number <= done - _BEHIND:
            self._pending.popleft()

    @property
    def armed(self):
        return self._state == "armed"

    # Ours.

    def _write(self, pending):
        plan = pending.plan
        arena = plan.arena.cpu().numpy()
        storages = []
        for address, nbytes, name, dtype, shape, strides, offset, before, behind in plan.storages:
            fits = dtype is not None and len(shape) <= 8
            made = _Kept(
                address, nbytes, name, dtype=dtype if fits else None, shape=shape if fits else None, strides=tuple(strides), offset=offset
            )
            made.turned = False
            # What is only written was anything before: all ones, as memory that nobody has written is on the machine.
            made.before = b"\xff" * nbytes if before is None else arena[before : before + nbytes].tobytes()
            made.behind = made.before if behind is None else arena[behind : behind + nbytes].tobytes()
            storages.append(made)
        given = pending.kernel.given(pending.kernel.with_none(pending.scalars))
        launching = pending.kernel.launching(pending.grid, given, storages, plan.addresses)
        return self._found(pending, launching, self._told_by_torch(pending.stack))


def _of_no_tensor(value):
    """What tells a pointer's launches apart: of a wrapper of Triton's, of none; no two launches where it is no tensor."""
    base = getattr(value, "base", None)
    if hasattr(base, "untyped_storage"):
        storage = base.untyped_storage()
        return value.data_ptr(), storage.data_ptr(), storage.nbytes(), base.dtype, base.shape, base.stride()
    return (0,) if value is None or isinstance(value, int) and value == 0 else (object(),)


def _larger(torch, memory, nbytes):
    """Memory of the device that has so many bytes: this, or new."""
    if memory is not None and memory.numel() >= nbytes:
        return memory
    return torch.empty(max(nbytes + nbytes // 2, 1), dtype=torch.uint8, device="cuda")


def _stacks(torch):
    """(what notes the stack of this thread, what makes (file, line, function, module) of that): torch's own way costs a fifth of
    asking frame by frame."""
    profiler = getattr(torch._C, "_profiler", None)
    gather, symbolize = getattr(profiler, "gather_traceback", None), getattr(profiler, "symbolize_tracebacks", None)
    if gather is None or symbolize is None:
        return stacks.frames, stacks.places

    def places(stack):
        modules = {getattr(module, "__file__", None): name for name, module in list(sys.modules.items())}
        return [(row["filename"], row["line"], row["name"], modules.get(row["filename"], "")) for row in symbolize([stack])[0]]

    return lambda: gather(True, False, False), places
