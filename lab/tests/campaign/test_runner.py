"""Campaigns: killed, shared, failing, on a cluster; the results are the same."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from glasses_lab.campaign import methods
from glasses_lab.campaign.forecasts import forecast_run
from glasses_lab.campaign.run import initial_design, run
from glasses_lab.campaign.runner import run_suite
from glasses_lab.campaign.suite import Task, read_suite
from glasses_lab.problems import get

MANY = """methods = ["random", "sobol"]
initial = 2
evaluations = 5
problems = ["SinCos", "Branin"]
seeds = {seeds}
"""


@pytest.fixture
def suite_file(tmp_path):
    def write(text, name="suite"):
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        return path

    return write


def command(suite, results, *more):
    return [sys.executable, "-m", "glasses_lab", "campaign", "run", str(suite), "--results", str(results), *more]


def comparable(record):
    """Without what depends on the clock."""
    return {name: value for name, value in record.items() if name not in ("seconds", "began")}


def content(path):
    """Comparable records in a fixed order."""
    return sorted((comparable(json.loads(line)) for line in path.read_text().splitlines()), key=lambda r: r["key"])


def test_a_run_is_whole_and_repeatable():
    task = Task("Branin", "el", 3, "fair", 4, 3)
    first, second = run(task), run(task)
    assert len(first["y"]) == len(first["x"]) == 7
    assert len(first["seconds"]) == 3
    assert first["error"] is None
    assert first["true"] is None
    assert (first["x"], first["recommended"]) == (second["x"], second["recommended"])
    assert first["recommended_true"] == get("Branin").true(first["recommended"])
    assert first["versions"]["jax"]
    assert json.loads(json.dumps(first)) == first


EARLIER = "import glasses; glasses.minimize(lambda x: x[0] ** 2, [(0, 1)], budget=5, seed=0)"
ONE_RUN = """
import json
from glasses_lab.campaign.run import run
from glasses_lab.campaign.suite import Task
print(json.dumps(run(Task("Cosines", "el", 0, "fair", 5, 12))["x"]))
"""


def test_a_run_does_not_depend_on_what_its_process_did_before():
    """Not on an earlier optimisation, nor on the number of threads of XLA: the same points to the last bit."""

    def points(code, **settings):
        surroundings = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "NPROC")} | settings
        done = subprocess.run([sys.executable, "-c", code], env=surroundings, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    alone = points(ONE_RUN)
    assert points(EARLIER + ONE_RUN) == alone
    assert points(ONE_RUN, NPROC="1") == alone


def test_a_run_leaves_the_environment_alone():
    before = dict(os.environ)
    record = run(Task("Branin", "random", 3, "fair", 4, 3))
    forecast_run(record, moments=(0.5,))
    assert dict(os.environ) == before


def test_every_method_starts_from_the_same_evaluations():
    for protocol in ("fair", "paper"):
        runs = [run(Task("Branin", method, 5, protocol, 4, 1)) for method in ("random", "sobol", "lcb")]
        assert all(r["x"][:4] == runs[0]["x"][:4] and r["y"][:4] == runs[0]["y"][:4] for r in runs)
    noise = np.array(runs[0]["y"]) - np.array(runs[0]["true"])
    assert 0.01 < np.abs(noise).max() < 0.5
    np.testing.assert_array_equal(initial_design(Task("Branin", "el", 5, "fair", 4, 9)), runs[0]["x"][:4])
    other = initial_design(Task("Branin", "el", 6, "fair", 4, 9))
    assert not np.array_equal(other, runs[0]["x"][:4])


def test_resuming_after_sigkill_gives_the_same_file(tmp_path, suite_file):
    suite = suite_file(MANY.format(seeds=60))
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    process = subprocess.Popen(command(suite, killed, "--jobs", "2"), start_new_session=True, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (killed.exists() and killed.read_bytes().count(b"\n") >= 20):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = len(killed.read_text().splitlines())
    assert 20 <= done < 240
    subprocess.run(command(suite, killed, "--jobs", "1"), check=True, capture_output=True)
    subprocess.run(command(suite, whole, "--jobs", "1"), check=True, capture_output=True)
    assert content(killed) == content(whole)
    assert len(content(whole)) == 240
    again = subprocess.run(command(suite, killed, "--jobs", "1"), check=True, capture_output=True, text=True)
    assert "to do" not in again.stdout


def test_two_campaigns_on_one_file_share_the_work(tmp_path, suite_file):
    suite, results = suite_file(MANY.format(seeds=50)), tmp_path / "results.jsonl"
    both = [subprocess.Popen(command(suite, results, "--jobs", "1"), stdout=subprocess.PIPE) for _ in range(2)]
    for process in both:
        process.communicate()
        assert process.returncode == 0
    keys = [json.loads(line)["key"] for line in results.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 200


class Stumbles:
    def __init__(self, start):
        self.asked = 0
        self.x = start.X[0]

    def ask(self):
        self.asked += 1
        if self.asked == 3:
            raise RuntimeError("lost the thread")
        return self.x

    def tell(self, x, y):
        pass


def test_a_failing_method_is_recorded_and_the_campaign_goes_on(tmp_path, suite_file, monkeypatch):
    monkeypatch.setitem(methods.METHODS, "stumbles", methods.Method(Stumbles, "stumbles"))
    text = MANY.format(seeds=2).replace('"random"', '"stumbles"')
    said = []
    records = run_suite(read_suite(suite_file(text)), tmp_path / "r.jsonl", jobs=1, say=said.append)
    assert len(records) == 8
    failed = [record for record in records if record["error"]]
    assert {record["method"] for record in failed} == {"stumbles"}
    assert all("RuntimeError: lost the thread" in record["error"] for record in failed)
    assert all(len(record["y"]) == 4 for record in failed)  # what was paid for is kept
    assert sum("failed and is recorded" in sentence for sentence in said) == 4
    assert run_suite(read_suite(suite_file(text)), tmp_path / "r.jsonl", jobs=1, say=said.append) == records
    monkeypatch.setitem(methods.METHODS, "stumbles", methods.METHODS["random"])
    healed = run_suite(read_suite(suite_file(text)), tmp_path / "r.jsonl", jobs=1, say=said.append, retry_failed=True)
    assert not any(record["error"] for record in healed)


def test_a_missing_library_is_no_result_of_the_method(tmp_path, suite_file, monkeypatch):
    def begin(start):
        import no_such_library  # noqa: F401

    monkeypatch.setitem(methods.METHODS, "far", methods.Method(begin, "far"))
    text = MANY.format(seeds=1).replace('"random"', '"far"')
    with pytest.raises(ImportError, match="no_such_library"):
        run_suite(read_suite(suite_file(text)), tmp_path / "r.jsonl", jobs=1, say=lambda _: None)
    assert (tmp_path / "r.jsonl").read_text() == ""


def test_a_run_that_kills_its_process_is_recorded_and_the_others_finish(tmp_path, suite_file):
    suite = read_suite(suite_file(MANY.format(seeds=4)))

    def work(task):
        if task.key.startswith("Branin | sobol | 3"):
            os.kill(os.getpid(), signal.SIGKILL)
        return run(task)

    said = []
    records = run_suite(suite, tmp_path / "r.jsonl", jobs=2, say=said.append, work=work)
    assert len(records) == 16
    (dead,) = [record for record in records if record["error"]]
    assert dead["key"].startswith("Branin | sobol | 3")
    assert dead["error"] == "the process died during this run, twice"
    assert any("worker process died" in sentence for sentence in said)
    again = run_suite(suite, tmp_path / "r.jsonl", jobs=2, say=said.append, work=work, retry_failed=True)
    assert [record["key"] for record in again if record["error"]] == [dead["key"]]  # tried again, once, and it ends


def test_methods_that_are_not_installed_are_left_and_said(tmp_path, suite_file, monkeypatch):
    monkeypatch.setitem(methods.METHODS, "far", methods.Method(Stumbles, "far", ("no_such_library",)))
    said = []
    text = MANY.format(seeds=1).replace('"random"', '"far"')
    records = run_suite(read_suite(suite_file(text)), tmp_path / "r.jsonl", jobs=1, say=said.append)
    assert {record["method"] for record in records} == {"sobol"}
    assert "far is left for an environment with no_such_library" in said[0]


def test_a_dask_cluster_gives_the_same_results(tmp_path, suite_file):
    from distributed import LocalCluster

    suite = read_suite(suite_file(MANY.format(seeds=4).replace('"sobol"', '"el"')))

    def work(task):
        return run(task) | {"process": os.getpid()}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
            workers = {nanny.pid for nanny in cluster.workers.values()}
            records = run_suite(
                suite, tmp_path / "dask.jsonl", cluster=f"dask:{cluster.scheduler_address}", say=lambda _: None, work=work
            )
    assert {record.pop("process") for record in records} == workers  # both of them worked, and nobody else
    local = run_suite(suite, tmp_path / "local.jsonl", jobs=1, say=lambda _: None)
    assert [comparable(record) for record in records] == [comparable(record) for record in local]


@pytest.mark.parametrize(
    ("cluster", "sentence"),
    [
        ("spark:here", r"cluster must be dask:ADDRESS or ray:ADDRESS, such as .*, got 'spark:here'"),
        ("dask", r"cluster must be dask:ADDRESS or ray:ADDRESS"),
        ("dask:tcp://127.0.0.1:9", r"No Dask scheduler answers at 'tcp://127.0.0.1:9'"),
        ("ray:nowhere", r"Ray cluster"),
    ],
)
def test_a_wrong_cluster_gets_a_sentence(tmp_path, suite_file, cluster, sentence, monkeypatch):
    monkeypatch.setattr("glasses_lab.campaign.runner.PATIENCE", 1)
    with pytest.raises(ValueError, match=sentence):
        run_suite(read_suite(suite_file(MANY.format(seeds=1))), tmp_path / "r.jsonl", cluster=cluster, say=lambda _: None)
