#!/usr/bin/env python3
"""What `assay.capture` and `assay.watch` cost a training step of a gated linear attention model, on a GPU.

    python bench/training_step.py                    needs PyTorch, Triton, flash-linear-attention and assay

Layers of flash-linear-attention's GatedLinearAttention with an MLP each, AdamW, bf16; forward, backward and the optimiser's
step, between two synchronisations. Every autotuned kernel takes its first configuration of four warps, with the watch and
without, so that the same kernels are compared and minutes of tuning are spared (with two warps ptxas spills kilobytes of some). Modes are processes of their own on the same card, since the
watch must be there when kernels are compiled: they compile side by side, and measure one after the other. Kernels' times are
the profiler's.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time


def model_of(layers, hidden, heads, length, batch):
    import torch
    from fla.layers import GatedLinearAttention

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(hidden) for _ in range(2))
            self.attention = GatedLinearAttention(mode="chunk", hidden_size=hidden, num_heads=heads)
            self.mlp = torch.nn.Sequential(torch.nn.Linear(hidden, 2 * hidden), torch.nn.GELU(), torch.nn.Linear(2 * hidden, hidden))

        def forward(self, x):
            x = x + self.attention(self.norms[0](x))[0]
            return x + self.mlp(self.norms[1](x))

    torch.manual_seed(1)
    model = torch.nn.Sequential(*(Layer() for _ in range(layers))).to("cuda", torch.bfloat16)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(batch, length, hidden, device="cuda", dtype=torch.bfloat16)

    def step():
        optimiser.zero_grad()
        loss = model(x).float().square().mean()
        loss.backward()
        optimiser.step()
        return loss

    return step


def first_configurations():
    """Of all kernels of flash-linear-attention that are imported: those of four warps, where there are any."""
    from triton.runtime.autotuner import Autotuner

    for module in list(sys.modules.values()):
        for value in list(vars(module).values()) if getattr(module, "__name__", "").startswith("fla") else ():
            while value is not None and not isinstance(value, Autotuner):
                value = getattr(value, "fn", None)
            if isinstance(value, Autotuner):
                value.configs = ([config for config in value.configs if config.num_warps == 4] or value.configs)[:1]


def milliseconds(step, count):
    import torch

    found = []
    for _ in range(count):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        found.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(found)


def kernel_microseconds(step, count=3):
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as told:
        for _ in range(count):
            step()
        torch.cuda.synchronize()
    return {row.key: row.self_device_time_total / count for row in told.key_averages() if row.self_device_time_total}


def launches_of(step):
    from assay.triton import taps

    class Counts:
        names = []

        def around(self, kernel, grid, stream, values, run):
            self.names.append(kernel.name)
            return run()

    counts = Counts()
    taps.tap.add(counts)
    step()
    taps.tap.remove(counts)
    return counts.names


def ready():
    """Waits for one's turn."""
    import torch

    torch.cuda.synchronize()
    print("READY", flush=True)
    sys.stdin.readline()


def measure(o):
    import torch
    import fla.layers  # noqa: F401
    import assay
    from assay.watch import watch

    first_configurations()
    step = model_of(o.layers, o.hidden, o.heads, o.length, o.batch)
    made = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    if o.mode == "watch":
        with watch() as births:
            for _ in range(5):
                loss = step()
            ready()
            made["step"] = milliseconds(step, o.steps)
            made["kernels"] = kernel_microseconds(step)
            made["births"], made["counts"] = births.result()["births"], births.result()["counts"]
            made["unwatched"] = births.result()["unwatched"]
    else:
        for _ in range(5):
            loss = step()
        ready()
        made["step"] = milliseconds(step, o.steps)
        made["triton"] = launches_of(step)
        if o.mode == "capture":
            with tempfile.TemporaryDirectory() as folder:
                with assay.capture(folder, when="nonfinite") as captured:
                    for _ in range(3):
                        step()
                    made["capture"] = milliseconds(step, o.steps)
                made["seen"], made["left_out"] = captured.seen, captured.left_out
            made["after"] = milliseconds(step, o.steps)
        else:
            made["kernels"] = kernel_microseconds(step)
    made["loss"] = loss.item()
    print("RESULT " + json.dumps(made), flush=True)


def begun(o, mode):
    words = [sys.executable, __file__, "--mode", mode]
    for name in ("layers", "hidden", "heads", "length", "batch", "steps"):
        words += [f"--{name}", str(getattr(o, name))]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_for(process, word):
    for line in process.stdout:
        if line.startswith(word):
            return line[len(word) :]
    sys.exit(f"{' '.join(process.args)}: ended without its {word.strip()}")


def tell(o):
    processes = [begun(o, mode) for mode in ("plain", "capture", "watch")]
    for process in processes:
        wait_for(process, "READY")
        print(f"{process.args[3]} is ready", file=sys.stderr)
    results = []
    for process in processes:
        print(file=process.stdin, flush=True)
        results.append(json.loads(wait_for(process, "RESULT ")))
        print(f"{process.args[3]}: {results[-1]['step']:.2f} ms", file=sys.stderr)
        process.wait()
    plain, capture, watch = results
    names = sorted(set(plain["triton"]))
    print(f"{plain['device']}, torch {plain['torch']}: {o.layers} layers, hidden {o.hidden}, {o.batch} x {o.length} tokens")
    print(f"step: plain {plain['step']:.2f} ms, {len(plain['triton'])} launches of {len(names)} Triton kernels; loss {plain['loss']}")
    print(f"capture, armed: {capture['capture']:.2f} ms, {capture['capture'] / capture['step']:.2f} times {capture['step']:.2f} (afterwards {capture['after']:.2f}); {capture['seen']} launches judged")
    for line in capture["left_out"]:
        print("  left out: " + line)
    print(f"watch: {watch['step']:.2f} ms, {watch['step'] / plain['step']:.2f} times; {len(watch['births'])} births; loss {watch['loss']}; {watch['counts']}")
    for line in watch["unwatched"]:
        print("  not watched: " + line)
    factors = {name: watch["kernels"][name] / plain["kernels"][name] for name in names if name in watch["kernels"] and name in plain["kernels"]}
    for name, factor in factors.items():
        print(f"  {name:50} {plain['kernels'][name]:9.1f} us {factor:6.2f}")
    if factors:
        mean = math.exp(statistics.fmean(math.log(factor) for factor in factors.values()))
        print(f"kernels: geometric mean {mean:.2f}, largest {max(factors.values()):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("all", "plain", "capture", "watch"), default="all")
    for name, value in (("layers", 4), ("hidden", 1024), ("heads", 4), ("length", 2048), ("batch", 4), ("steps", 30)):
        parser.add_argument(f"--{name}", type=int, default=value)
    o = parser.parse_args()
    tell(o) if o.mode == "all" else measure(o)


if __name__ == "__main__":
    main()
