"""The engine's C surface (include/assay_engine.h), by ctypes. Nothing else of the package calls it.

Calls release the GIL. One from the main thread is made by a thread of its own while the main thread waits, so that
Ctrl-C is heard: the engine is told to stop, and KeyboardInterrupt raised once it has.
"""
from __future__ import annotations

import _thread
import ctypes
import json
import queue
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Iterable, Sequence

from .errors import BadInput, EngineError

_MOST_AXES = 8
_OK, _BAD_INPUT, _ABANDONED, _INTERNAL, _OVER_BUDGET = range(5)

Progress = Callable[[str], None]


class OverBudget(Exception):
    """A launch took more lane-instructions than its limit."""


class Array(ctypes.Structure):
    """assay_array: a storage of the process, and the tensor in it."""

    _fields_ = [
        ("struct_bytes", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("writable", ctypes.c_int32),
        ("format", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("shape", ctypes.c_int64 * _MOST_AXES),
        ("strides", ctypes.c_int64 * _MOST_AXES),
        ("axes", ctypes.c_char_p),
    ]


_Heard = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class _Control(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_uint64),
        ("stop", ctypes.POINTER(ctypes.c_int32)),
        ("progress", _Heard),
        ("user", ctypes.c_void_p),
    ]


class Launch(ctypes.Structure):
    """assay_launch."""

    _fields_ = [
        ("struct_bytes", ctypes.c_uint64),
        ("entry", ctypes.c_char_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("cooperative", ctypes.c_int32),
        ("packed", ctypes.c_char_p),
        ("packed_bytes", ctypes.c_uint64),
        ("arguments", ctypes.POINTER(ctypes.c_char_p)),
        ("argument_count", ctypes.c_uint64),
        ("storages", ctypes.POINTER(Array)),
        ("storage_count", ctypes.c_uint64),
        ("options", ctypes.c_char_p),
    ]


class Function(ctypes.Structure):
    """assay_function."""

    run_type = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Array), ctypes.c_uint64, ctypes.c_void_p
    )
    _fields_ = [("struct_bytes", ctypes.c_uint64), ("run", run_type), ("user", ctypes.c_void_p)]


LIBRARY = Path(__file__).absolute().parent / "lib" / "libassay.so"


def _load() -> ctypes.CDLL:
    if not LIBRARY.exists():
        raise ImportError(
            f"assay: {LIBRARY} is missing: this is the source folder; in the clone, build a package with ./assay wheel"
        )
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        raise ImportError(f"assay: the engine cannot be loaded: {error}") from None
    answer, control = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_Control)
    surface: dict[str, tuple[Any, list[Any]]] = {
        "assay_answer_text": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)]),
        "assay_answer_array": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(Array)]),
        "assay_answer_free": (None, [ctypes.c_void_p]),
        "assay_about": (ctypes.c_int, [answer]),
        "assay_module_load": (
            ctypes.c_int,
            [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), answer],
        ),
        "assay_module_free": (None, [ctypes.c_void_p]),
        "assay_machine_launch": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(Launch), control, answer]),
        "assay_call": (
            ctypes.c_int,
            [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Array), ctypes.c_uint64, control, answer],
        ),
    }
    run = ctypes.c_void_p
    surface |= {
        "assay_run_output": (None, [run, ctypes.POINTER(Array)]),
        "assay_run_ended": (None, [run, ctypes.c_char_p]),
        "assay_run_named": (None, [run, ctypes.POINTER(Array)]),
        "assay_run_launching": (None, [run, ctypes.c_void_p, ctypes.POINTER(Launch)]),
        "assay_run_launched": (None, [run]),
        "assay_call_function": (
            ctypes.c_int,
            [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Function), control, answer],
        ),
    }
    for name, (result, arguments) in surface.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()


class Answer:
    """What a call gave back: parsed JSON in `value`; arrays are read by `array(i)` as long as this lives."""

    def __init__(self, pointer: int | None):
        self._pointer = pointer
        self._value: Any = None

    def __del__(self) -> None:
        if self._pointer:
            _library.assay_answer_free(self._pointer)

    @property
    def text(self) -> str:
        size = ctypes.c_uint64()
        at = _library.assay_answer_text(self._pointer, ctypes.byref(size))
        return ctypes.string_at(at, size.value).decode("utf-8", "replace")

    @property
    def value(self) -> Any:
        if self._value is None:
            self._value = json.loads(self.text)
        return self._value

    def array(self, index: int) -> Array | None:
        """The array, its memory that of this answer; None past the last."""
        array = Array(struct_bytes=ctypes.sizeof(Array))
        return None if _library.assay_answer_array(self._pointer, index, ctypes.byref(array)) else array


def _raise(status: int, answer: Answer) -> None:
    if status == _OK:
        return
    text = answer.text if answer._pointer else ""
    if status == _BAD_INPUT:
        raise BadInput(text)
    if status == _OVER_BUDGET:
        raise OverBudget(text)
    if status == _ABANDONED:
        raise KeyboardInterrupt
    raise EngineError(f"internal error: {text}")


def _heard(work: Callable[[], int], stop: ctypes.c_int32) -> int:
    """work(), in a thread of its own where this is the main thread: a signal's handler runs at once, and what it
    raises ends the work first."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: list[int | BaseException] = []
    done = _thread.allocate_lock()
    done.acquire()

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)
        finally:
            done.release()

    interruption: BaseException | None = None
    try:
        _thread.start_new_thread(body, ())
    except RuntimeError:  # no more threads, or the interpreter is ending
        return work()
    while not outcome:
        try:
            done.acquire()
        except BaseException as error:
            stop.value = 1
            interruption = error
    if interruption is not None:
        raise interruption
    (status,) = outcome
    if isinstance(status, BaseException):
        raise status
    return status


def _controlled(
    call: Callable[[Any, Any], int], progress: Progress | None, keep: tuple[Any, ...]
) -> Answer:
    """The answer of call(control, answer); `keep` lives as long as it runs."""
    stop = ctypes.c_int32(0)
    failure: list[BaseException] = []

    def tell(_user: Any, line: bytes) -> None:
        try:
            if progress is not None and not failure:
                progress(line.decode("utf-8", "replace"))
        except BaseException as error:
            failure.append(error)
            stop.value = 1

    heard = _Heard(tell) if progress is not None else _Heard()
    control = _Control(ctypes.sizeof(_Control), ctypes.pointer(stop), heard, None)
    pointer = ctypes.c_void_p()
    keep = (keep, heard, stop)
    status = _INTERNAL
    try:
        status = _heard(lambda: call(ctypes.byref(control), ctypes.byref(pointer)), stop)
    finally:
        answer = Answer(pointer.value)
        del keep
    if failure:
        raise failure[0]
    _raise(status, answer)
    return answer


class _PassingLine:
    """A line on standard error, where that is a terminal, which disappears again."""

    shown = False

    def __call__(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line[:200]}")
        sys.stderr.flush()
        self.shown = True

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def call(
    operation: str, request: Any, arrays: Sequence[Array] = (), *, progress: Progress | None = None, keep: Any = None
) -> Answer:
    """An operation of src/binding/operations.cpp. Without `progress` a terminal shows what is being done."""
    given = (Array * len(arrays))(*arrays)
    text = json.dumps(request).encode()
    line = _PassingLine() if progress is None and sys.stderr is not None and sys.stderr.isatty() else None
    try:
        return _controlled(
            lambda control, answer: _library.assay_call(operation.encode(), text, given, len(arrays), control, answer),
            progress or line,
            (given, text, keep, arrays),
        )
    finally:
        if line is not None:
            line.clear()


class Run:
    """assay_run: one run asked of a function. `inputs` is the engine's memory, to be read until the run is over."""

    def __init__(self, request: bytes, inputs: list[Array], pointer: int):
        self.request: dict[str, Any] = json.loads(request)
        self.inputs = inputs
        self._pointer = pointer
        self._keep: list[Any] = []

    def output(self, array: Array) -> None:
        _library.assay_run_output(self._pointer, ctypes.byref(array))

    def named(self, array: Array) -> None:
        """Where `request` asks for launches: what the tensor is called."""
        _library.assay_run_named(self._pointer, ctypes.byref(array))

    def launching(self, module: LoadedModule, given: Launch, keep: Any) -> None:
        self._keep.append(keep)  # no other tensor is to lie there while the record lasts
        _library.assay_run_launching(self._pointer, module.pointer, ctypes.byref(given))

    def launched(self) -> None:
        _library.assay_run_launched(self._pointer)

    def ended(self, said: dict[str, Any]) -> None:
        _library.assay_run_ended(self._pointer, json.dumps(said).encode())


class _Asked:
    """A run that the engine's thread waits for."""

    def __init__(self, run: Run):
        self.run = run
        self.done = _thread.allocate_lock()
        self.done.acquire()


def call_function(
    operation: str, request: Any, serve: Callable[[Run], dict[str, Any]], *, progress: Progress | None = None
) -> Answer:
    """An operation with a function: serve(run) is called in this thread for each run of it, and returns what
    assay_run_ended takes. What it raises ends the operation and is raised again."""
    asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
    stop = ctypes.c_int32(0)
    line = _PassingLine() if progress is None and sys.stderr is not None and sys.stderr.isatty() else None
    told = progress or line

    def tell(_user: Any, text: bytes) -> None:
        if told is not None:
            told(text.decode("utf-8", "replace"))

    def ask(_user: Any, text: bytes, inputs: Any, count: int, pointer: int) -> None:
        item = _Asked(Run(text, [inputs[i] for i in range(count)], pointer))
        asked.put(item)
        item.done.acquire()

    heard = _Heard(tell) if told is not None else _Heard()
    control = _Control(ctypes.sizeof(_Control), ctypes.pointer(stop), heard, None)
    function = Function(ctypes.sizeof(Function), Function.run_type(ask), None)
    pointer = ctypes.c_void_p()
    status: list[int] = []
    text = json.dumps(request).encode()

    def body() -> None:
        try:
            status.append(
                _library.assay_call_function(
                    operation.encode(), text, ctypes.byref(function), ctypes.byref(control), ctypes.byref(pointer)
                )
            )
        finally:
            asked.put(None)

    failure: BaseException | None = None
    _thread.start_new_thread(body, ())
    while True:
        try:
            item = asked.get()
        except BaseException as error:
            stop.value, failure = 1, failure or error
            continue
        if item is None:
            break
        said = {"failed": "given up"}
        try:
            if failure is None:
                said = serve(item.run)
        except BaseException as error:
            stop.value, failure = 1, error
        finally:
            item.run.ended(said)
            item.done.release()
    if line is not None:
        line.clear()
    answer = Answer(pointer.value)
    if failure is not None:
        raise failure
    _raise(status[0] if status else _INTERNAL, answer)
    return answer


def about() -> dict[str, Any]:
    pointer = ctypes.c_void_p()
    status = _library.assay_about(ctypes.byref(pointer))
    answer = Answer(pointer.value)
    _raise(status, answer)
    value: dict[str, Any] = answer.value
    return value


class LoadedModule:
    """assay_module: PTX that stays parsed as long as this lives."""

    def __init__(self, text: bytes, path: str):
        self.pointer = ctypes.c_void_p()
        said = ctypes.c_void_p()
        status = _library.assay_module_load(
            text, len(text), path.encode("utf-8", "surrogateescape"), ctypes.byref(self.pointer), ctypes.byref(said)
        )
        answer = Answer(said.value)
        _raise(status, answer)
        self.description = answer.value

    def __del__(self) -> None:
        pointer = getattr(self, "pointer", None)
        if pointer:
            _library.assay_module_free(pointer)


def launch(module: LoadedModule, given: Launch, *, progress: Progress | None = None, keep: Iterable[Any] = ()) -> Any:
    """The answer's JSON. `keep`: what the launch points into."""
    return _controlled(
        lambda control, answer: _library.assay_machine_launch(module.pointer, ctypes.byref(given), control, answer),
        progress,
        (module, given, keep),
    ).value
