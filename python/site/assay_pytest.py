"""pytest --assay: a suite's Triton kernels run on the machine. Without the option nothing is imported or changed."""

from __future__ import annotations

import json

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("assay", "Triton kernels on the machine, without a GPU")
    group.addoption("--assay", action="store_true", help="run Triton kernels on the machine; findings fail their test")
    group.addoption("--assay-arch", default="sm_90", help="sm_80, sm_89, sm_90, or a GPU: A100, L40, H100, H200")
    group.addoption("--assay-checks", default="all", help="none, all, or names separated by commas (default: all)")
    group.addoption("--assay-budget", type=float, default=2e9, help="lane-instructions a test may take (default: 2e9)")
    group.addoption("--assay-report", metavar="FILE", help="write what each test did, as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """The machine starts before the suite's conftest.py files import what asks for the device."""
    asked = early_config.known_args_namespace
    if asked.assay:
        from assay.triton import machine

        try:
            started = machine(asked.assay_arch, asked.assay_checks).start()
        except (ValueError, RuntimeError, ImportError) as error:
            raise pytest.UsageError(f"--assay: {error}") from None
        early_config.pluginmanager.register(_OnTheMachine(early_config, started), "assay-machine")


def pytest_configure(config):
    config.addinivalue_line("markers", "assay(checks=, budget=): of a test under --assay: its checks, its budget")
    config.addinivalue_line("markers", "no_assay: the test is skipped under --assay")


_did = pytest.StashKey()


class _OnTheMachine:
    """Of workers of pytest-xdist each has a machine; what their tests did comes with the tests' reports."""

    def __init__(self, config, machine):
        self.config, self.machine = config, machine
        self.tests = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        if item.get_closest_marker("no_assay"):
            pytest.skip("marked no_assay")
        machine, marker = self.machine, item.get_closest_marker("assay")
        given = marker.kwargs if marker else {}
        machine.checks = given.get("checks", self.config.getoption("assay_checks"))
        machine.set_budget(int(given.get("budget", self.config.getoption("assay_budget"))))
        found, launches, taken = len(machine.findings), machine.launch_count, machine.lane_instructions
        outcome = "passed"
        try:
            result = yield
            if machine.over_budget:
                self._stopped()
            self._require_no_findings(machine.findings[found:])
            return result
        except BaseException as error:
            outcome = type(error).__name__
            if machine.over_budget and not isinstance(error, pytest.skip.Exception):
                outcome = "stopped"
                self._stopped()
            raise
        finally:
            item.stash[_did] = {
                "test": item.nodeid,
                "outcome": "stopped" if machine.over_budget else outcome,
                "launches": machine.launch_count - launches,
                "lane_instructions": machine.lane_instructions - taken,
                "findings": [launch.text() for launch in machine.findings[found:]],
            }
            machine.set_budget(None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "call" and _did in item.stash:
            report.assay = item.stash[_did]
        return report

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "assay"):
            self.tests.append(report.assay)

    def _stopped(self):
        pytest.skip("assay: stopped by the budget of lane-instructions (--assay-budget)")

    def _require_no_findings(self, launches):
        if launches:
            pytest.fail("\n".join(launch.text() for launch in launches), pytrace=False)

    def pytest_sessionfinish(self):
        file = self.config.getoption("assay_report")
        if file and not hasattr(self.config, "workerinput"):
            with open(file, "w", encoding="utf-8") as out:
                json.dump({"arch": self.machine.gpu.arch, "gpu": self.machine.gpu.name, "tests": self.tests}, out, indent=1)

    def pytest_terminal_summary(self, terminalreporter):
        took, findings = (sum(test[of] for test in self.tests) for of in ("launches", "lane_instructions")), []
        for test in self.tests:
            findings += test["findings"]
        terminalreporter.write_sep("-", "assay")
        terminalreporter.write_line(self.machine.summary(*took, len(findings)))

    def pytest_unconfigure(self):
        self.machine.stop()
