"""Autotuners on a machine whose times say nothing about a GPU's: the first configuration that compiles and fits
is taken, or all of them run."""

from __future__ import annotations


def install(patches, machine):
    from triton.runtime.autotuner import Autotuner

    bench, run, kept = Autotuner._bench, Autotuner.run, []

    def tuned_here(self, *args, **kwargs):
        """What was chosen on a GPU, or by another machine, is not taken over, nor left behind."""
        if vars(self).get("_assay_machine") is not machine:
            kept.append((self, self.cache))
            self.cache, self._assay_machine = {}, machine
        return run(self, *args, **kwargs)

    def put_back():
        for tuner, cache in reversed(kept):
            tuner.cache, tuner._assay_machine = cache, None

    patches.set(Autotuner, "run", tuned_here)
    patches.call(put_back)

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
