"""A capture that waits for the first output that is not finite, on a GPU: outputs are judged on the device behind each launch, with
one flag; what a launch had is kept there if the flag says so, and read when the host sees that."""

from __future__ import annotations

import ctypes
import threading
from collections import deque

from assay import _tensors, cuda_driver, machine
from assay.triton import judging, taps

_ALIGNED = 512


class _Kept(machine.Storage):
    """A storage of the launch that triggered: `read` gives what it held before, then (`turned`) after."""

    __slots__ = ("before", "behind", "turned")

    def read(self):
        return self.behind if self.turned else self.before


class Pending:
    """A launch of which the device has not told yet. `scalars`: its arguments, without its tensors; `storages`: (address, bytes, name,
    format, shape, strides, offset, where the bytes before and after lie in the arena, or None)."""

    __slots__ = ("number", "kernel", "grid", "scalars", "addresses", "stack", "storages", "arena")

    def __init__(self, number, kernel, grid, scalars, stack):
        self.number, self.kernel, self.grid, self.scalars, self.stack = number, kernel, grid, scalars, stack
        self.addresses = {}
        self.storages = []


class Armed:
    """`found(Pending, Launching)` is called in the launching thread when a launch has triggered, and says whether that is what was
    waited for. If not (what is not finite was there before) further launches are judged; those that had been made meanwhile are not."""

    def __init__(self, found, driver=None):
        self._found, self._driver = found, driver
        self._state = None
        self._lock = threading.Lock()

    def start(self, torch):
        self._torch = torch
        driver = self._driver or cuda_driver.opened()
        self._driver = driver
        driver.enter()
        self._flag = torch.zeros(4, dtype=torch.int32, device="cuda")
        self._host = torch.zeros(4, dtype=torch.int32, pin_memory=driver.pins)
        self._words = (ctypes.c_uint32 * 2).from_address(self._host.data_ptr())
        self._judge = judging.Judge(driver, self._flag.data_ptr(), self._host.data_ptr())
        self._arena = self._scratch = None
        self._arena_room = self._scratch_room = self._arena_at = self._scratch_at = 0
        self._pending = deque()
        self._state = "armed"

    def around(self, number, kernel, grid, stream, values, stack, run):
        """Launches, and judges what it wrote. Raises taps.CannotKeep, before the launch."""
        pending = Pending(number, kernel, grid, list(values), stack)
        found = self._storages(pending, values)
        with self._lock:
            rows, copies = self._rows(pending, found)
            if len(rows) > judging.MOST:
                return run()
            base = self._scratch_at
            for address, to, nbytes in copies:
                self._driver.copy(base + to, address, nbytes, stream)
            result = run()
            pending.arena = self._arena
            self._judge.launch(number, rows, stream)
            self._pending.append(pending)
            self.look()
        return result

    @staticmethod
    def _storages(pending, values):
        """address -> [tensor, is it read, is it written, bytes, name]; the pending launch loses its tensors."""
        found = {}
        for at, place, name, reads, writes in pending.kernel.pointers:
            value = values[at]
            pending.scalars[at] = None
            tensor = getattr(value, "base", value) if type(value).__name__ == "TensorWrapper" else value
            try:
                storage = tensor.untyped_storage()
            except AttributeError:
                if value is None or value == 0:
                    pending.addresses[place] = 0
                    continue
                raise taps.CannotKeep(f"{name} is no tensor") from None
            pending.addresses[place] = tensor.data_ptr() if tensor is value else value.data_ptr()
            address = storage.data_ptr()
            row = found.get(address)
            if row is not None:
                row[1] |= reads
                row[2] |= writes
            elif nbytes := storage.nbytes():
                found[address] = [tensor, reads, writes, nbytes, name]
        return found

    def _rows(self, pending, found):
        """(rows of the judge, copies to the scratch memory before the launch)."""
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
            pending.storages.append((address, nbytes, name, dtype, tensor.shape, tensor.stride(), tensor.storage_offset(), before, behind))
        self._make_room(at, scratch)
        for row in rows:
            row[2] += self._arena_at
            if row[0]:
                row[1] += self._scratch_at
        return rows, copies

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
                self._flag.zero_()
                self._words[:] = 0, 0
            self._pending.clear()
            return
        while self._pending and self._pending[0].number <= done:
            self._pending.popleft()

    @property
    def armed(self):
        return self._state == "armed"

    # Ours.

    def _make_room(self, arena, scratch):
        torch = self._torch
        if arena > self._arena_room:
            self._arena_room = arena + arena // 2
            self._arena = torch.empty(self._arena_room, dtype=torch.uint8, device="cuda")
            self._arena_at = self._arena.data_ptr()
        if scratch > self._scratch_room:
            self._scratch_room = scratch + scratch // 2
            self._scratch = torch.empty(self._scratch_room, dtype=torch.uint8, device="cuda")
            self._scratch_at = self._scratch.data_ptr()

    def _write(self, pending):
        arena = pending.arena.cpu().numpy()
        storages = []
        for address, nbytes, name, dtype, shape, strides, offset, before, behind in pending.storages:
            fits = dtype is not None and len(shape) <= 8
            made = _Kept(
                address, nbytes, name, dtype=dtype if fits else None, shape=shape if fits else None, strides=tuple(strides), offset=offset
            )
            made.turned = False
            # What is only written was anything before: all ones, as memory that nobody has written is on the machine.
            made.before = b"\xff" * nbytes if before is None else arena[before : before + nbytes].tobytes()
            made.behind = made.before if behind is None else arena[behind : behind + nbytes].tobytes()
            storages.append(made)
        given = pending.kernel.given(pending.scalars)
        launching = pending.kernel.launching(pending.grid, given, storages, pending.addresses)
        return self._found(pending, launching)
