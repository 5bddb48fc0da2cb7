#!/usr/bin/env python3
"""What the watch costs single kernels, of Triton and of CUDA, on a GPU.

    python bench/watched_kernels.py FOLDER --library build/release/standin/libassay_watch.so [NAME..]
        [--ours build/release/bench/kernel_speed_bench --ours-name gla.chunk ..]

needs PyTorch, Triton and assay; FOLDER holds a module `rows` with the kernels of other projects:

    ROWS = {NAME: (prepare, PART)}    prepare() -> (step, outputs): what runs the kernel once on inputs of a fixed seed, and the
                                      tensors that it writes; PART of the kernel's name, as profilers tell it

and --ours measures this project's own, named, by that program. Each row has a process without the watch and one with it, as `assay watch -- python` starts it: the library is loaded before
the CUDA runtime, and Triton compiles inside `assay.watch()`. All prepare side by side, since compiling takes longest, and measure one
after the other; what is not ready after --limit seconds is left out. Times are the profiler's, of that kernel alone (of ours, of
all launches of a direction); outputs are compared bit for bit after the first step (of ours, by `watch_births`). They may differ where PTX leaves contraction to
the compiler (`mul.f32`, `add.f32` without rounding): how far, is told.
"""
import argparse
import contextlib
import ctypes
import hashlib
import importlib
import importlib.util
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time


def digest(tensors):
    import torch

    made = hashlib.sha256()
    for tensor in tensors:
        made.update(tensor.reshape(-1).view(torch.uint8).cpu().numpy().tobytes())
    return made.hexdigest()


def microseconds(step, part, steps):
    """The median of a kernel's own times."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as told:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    times = [event.device_time_total for event in told.events() if part in event.name and event.device_time_total > 0]
    if not times:
        raise SystemExit(f"no kernel is called {part}: " + ", ".join(sorted({event.name for event in told.events()})))
    return statistics.median(times)


def measure(o):
    import torch

    sys.path.insert(0, o.folder)
    prepare, part = importlib.import_module("rows").ROWS[o.name[0]]
    births = None
    with contextlib.ExitStack() as inside:
        if o.mode == "watch":
            from assay.watch import load, watch

            births = inside.enter_context(watch()) if importlib.util.find_spec("triton") else load()
        step, outputs = prepare()
        step()
        torch.cuda.synchronize()
        made = {"digest": digest(outputs), "device": torch.cuda.get_device_name(), "torch": torch.__version__}
        made["finite"] = all(bool(torch.isfinite(tensor).all()) for tensor in outputs if tensor.is_floating_point())
        if o.dump:
            torch.save([tensor.cpu() for tensor in outputs], dump_of(o.dump, o.name[0], o.mode))
        microseconds(step, part, 1)  # the profiler takes seconds to begin
        print("READY", flush=True)
        sys.stdin.readline()
        made["us"] = microseconds(step, part, o.steps)
        if births is not None:
            told = births.result()
            made["births"], made["counts"], made["unwatched"] = len(told["births"]), told["counts"], told["unwatched"]
    print("RESULT " + json.dumps(made), flush=True)


def dump_of(folder, name, mode):
    return os.path.join(folder, hashlib.sha256(name.encode()).hexdigest()[:16] + "." + mode)


def difference(folder, name):
    """The largest difference of outputs, as a share of their largest number."""
    import torch

    plain, watched = (torch.load(dump_of(folder, name, mode)) for mode in ("plain", "watch"))
    return max(float((a.double() - b.double()).abs().max() / a.double().abs().max()) for a, b in zip(plain, watched))


def environment_of(o, mode):
    kept = {"compiled": os.path.abspath(o.compiled)} if o.compiled else {}
    watched = {"LD_PRELOAD": os.path.abspath(o.library), "ASSAY_WATCH": json.dumps(kept)}
    return os.environ | (watched if mode == "watch" else {})


def begun(o, name, mode):
    words = [sys.executable, __file__, o.folder, name, "--mode", mode, "--steps", str(o.steps), "--dump", o.dump]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment_of(o, mode))


def rest_of_line(process, word, seconds):
    """The rest of the line that begins so; None where the process ended before, or took longer."""
    found = []

    def look():
        for line in iter(process.stdout.readline, ""):
            if line.startswith(word):
                return found.append(line[len(word) :])

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.1))
    if not found:
        process.kill()
    return found[0] if found else None


def results_of(o, names):
    """By name and mode; None of what did not run."""
    begin, results = time.monotonic(), {}
    processes = {(name, mode): begun(o, name, mode) for name in names for mode in ("plain", "watch")}
    compiled = [ours_begun(o, "watch", [name], stdout=subprocess.DEVNULL) for name in (o.ours_name if o.ours else ())]
    ready = {}
    for key, process in processes.items():
        ready[key] = rest_of_line(process, "READY", begin + o.limit - time.monotonic()) is not None
        print(f"{' '.join(key)}: {'ready' if ready[key] else 'not ready'} after {time.monotonic() - begin:.0f} s", file=sys.stderr)
    for process in compiled:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(begin + o.limit - time.monotonic(), 0.1))
        process.kill()
    print(f"measuring after {time.monotonic() - begin:.0f} s", file=sys.stderr)
    for key, process in processes.items():
        line = None
        if ready[key]:
            with contextlib.suppress(BrokenPipeError):
                print(file=process.stdin, flush=True)
            line = rest_of_line(process, "RESULT ", 60)
        results[key] = json.loads(line) if line else None
        process.wait()
    return results


def ours_begun(o, mode, names, **more):
    """At the same addresses each time, so that the driver finds in its cache what it compiled of the same watched text."""
    same_addresses = ["setarch", "-R"] if shutil.which("setarch") else []
    return subprocess.Popen([*same_addresses, o.ours, *names], env=environment_of(o, mode), text=True, **more)


def ours(o, mode):
    """Microseconds by kernel, direction and sizes."""
    ran = ours_begun(o, mode, o.ours_name, stdout=subprocess.PIPE).communicate()[0]
    row = re.compile(r"(\S+) +(forward|backward) +(\d+, *\d+, *\d+, *\d+) +([\d.]+) ms")
    found = (row.match(line) for line in ran.splitlines())
    return {f"{f[1]} {f[2]} {f[3].replace(' ', '')}": 1e3 * float(f[4]) for f in found if f}


def told(name, plain, watched, more=""):
    """Prints a row; what the watch multiplies the time by."""
    print(f"{name:44} {plain:9.1f} {watched:9.1f} {watched / plain:6.2f}  {more}", flush=True)
    return watched / plain


def tell(o):
    sys.path.insert(0, o.folder)
    names = [name for name in importlib.import_module("rows").ROWS if not o.name or name in o.name]
    results = results_of(o, names)
    factors = {}
    print(f"{'kernel':44} {'us':>9} {'watched':>9} {'times':>6}  bits")
    for name in names:
        plain, watched = (results[name, mode] for mode in ("plain", "watch"))
        if not plain or not watched:
            print(f"{name:44} did not run {'plain' if not plain else 'with the watch'}")
            continue
        bits = "same" if plain["digest"] == watched["digest"] else f"differ by {difference(o.dump, name):.1e}"
        bits += "" if plain["finite"] else ", not finite"
        factors[name] = told(name, plain["us"], watched["us"], f"{bits}, {watched['births']} births")
        for line in watched["unwatched"]:
            print("  not watched: " + line)
    if o.ours:
        plain, watched = ours(o, "plain"), ours(o, "watch")
        factors |= {name: told(name, plain[name], watched[name]) for name in plain if name in watched}
    if factors:
        mean = math.exp(statistics.fmean(math.log(factor) for factor in factors.values()))
        print(f"{len(factors)} kernels: geometric mean {mean:.3f}, largest {max(factors.values()):.2f}")
    if o.json:
        with open(o.json, "w") as file:
            json.dump({"factors": factors, **{" ".join(key): value for key, value in results.items()}}, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("name", nargs="*", help="rows; all where none is named")
    parser.add_argument("--library", default="libassay_watch.so")
    parser.add_argument("--mode", choices=("all", "plain", "watch"), default="all")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--limit", type=float, default=600, help="seconds for all to become ready")
    parser.add_argument("--compiled", help="folder of machine code of watched modules (`assay watch --compiled`)")
    parser.add_argument("--ours", help="kernel_speed_bench")
    parser.add_argument("--ours-name", nargs="*", default=["gla.chunk"], help="kernels that it measures")
    parser.add_argument("--json")
    parser.add_argument("--dump", default="", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.mode != "all":
        return measure(o)
    with tempfile.TemporaryDirectory() as o.dump:
        tell(o)


if __name__ == "__main__":
    main()
