"""Autotuners on a machine whose times say nothing about a GPU's: the first configuration that compiles and fits
is taken, or all of them run."""

from __future__ import annotations


def install(patches, machine):
    from triton.runtime.autotuner import Autotuner

    bench = Autotuner._bench

    def first(self, *args, config, **meta):
        # `nargs` is made anew by each run that tunes: it tells the runs apart.
        if getattr(self, "_assay_taken", None) is self.nargs:
            return [2.0, 2.0, 2.0]
        with machine.rehearsal():
            times = bench(self, *args, config=config, **meta)
        if times[0] < float("inf"):
            self._assay_taken = self.nargs
        return times

    def every(self, *args, config, **meta):
        with machine.configuration(str(config)):
            return bench(self, *args, config=config, **meta)

    patches.set(Autotuner, "_bench", first if machine.configs == "first" else every)
