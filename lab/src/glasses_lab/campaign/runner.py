"""Running a suite: every run that is not in the results file yet, in parallel, each written as soon as it is finished.

Local processes through joblib by default; with the address of a Dask or Ray cluster the same tasks go there through
joblib's backend. Only this process writes. It may be killed at any moment and started again, and several of them may work on
one file: see ``store``.
"""

from __future__ import annotations

import contextlib
import itertools
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

from glasses_lab.campaign.methods import method_of
from glasses_lab.campaign.run import run, versions
from glasses_lab.campaign.store import Store
from glasses_lab.campaign.suite import Suite, Task

Say = Callable[[str], None]
PATIENCE = 10  # seconds for a cluster to answer


def run_suite(
    suite: Suite,
    path: Path,
    *,
    jobs: int = -1,
    cluster: str | None = None,
    methods: list[str] | None = None,
    retry_failed: bool = False,
    say: Say = print,
    work: Callable[[Task], dict[str, Any]] = run,
) -> list[dict[str, Any]]:
    """Do what is missing and return the records of the whole suite that exist afterwards.

    ``cluster``: ``dask:tcp://host:8786`` or ``ray:auto`` (or any address of theirs). ``methods``: only these.
    ``retry_failed``: also the runs whose record is a failure.
    """
    chosen = [task for task in suite.tasks if methods is None or task.method in methods]
    every = dict.fromkeys(task.method for task in chosen)
    absent = {method: method_of(method).missing() if cluster is None else [] for method in every}
    for method, libraries in absent.items():
        if libraries:
            build = method_of(method).environment
            say(f"{method} is left for an environment with {' and '.join(libraries)} (`make {build}` builds one).")
    with Store(path, say) as store:
        done = {key for key, record in store.records.items() if not (retry_failed and record.get("error"))}
        todo = [task for task in chosen if task.key not in done and not absent[task.method]]
        if todo:
            say(f"{suite.name}: {len(todo)} of {len(chosen)} runs to do, results in {path}.")
        with _Progress(suite.name, len(todo)) as progress:
            finished = _work_through(todo, store, jobs, cluster, retry_failed, work, say)
            with contextlib.closing(finished):
                for record in finished:
                    store.append(record)
                    if record["error"]:
                        say(f"{record['key']} failed and is recorded: {record['error']}")
                    progress.advance()
        elsewhere = [task for task in todo if task.key not in store.records]
        if elsewhere:
            say(f"{len(elsewhere)} runs are being done by another process on this file.")
        return [store.records[task.key] for task in chosen if task.key in store.records]


def _work_through(
    todo: list[Task],
    store: Store,
    jobs: int,
    cluster: str | None,
    again: bool,
    work: Callable[[Task], dict[str, Any]],
    say: Say,
) -> Generator[dict[str, Any], None, None]:
    """Records as they finish. A run that kills its process is tried once more alone and then recorded as failed."""
    import joblib

    in_flight: dict[str, Task] = {}
    taken: set[str] = set()  # every run is taken once, also when the pool has to be started again

    def dispatch() -> Iterator[Any]:
        for task in todo:
            if task.key not in taken and store.claim(task.key, again=again):
                taken.add(task.key)
                in_flight[task.key] = task
                yield joblib.delayed(work)(task)

    with _backend(cluster, jobs), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs")  # loky renews a worker that has grown
        while True:
            try:
                for record in _in_parallel(dispatch(), streaming=cluster is None or not cluster.startswith("ray")):
                    del in_flight[record["key"]]
                    yield record
                return
            except BrokenExecutor:
                say(f"A worker process died; its {len(in_flight)} runs are tried again one by one.")
                for key, task in list(in_flight.items()):
                    yield _alone(task, work)
                    del in_flight[key]
            except Exception as error:
                if type(error).__name__ != "KilledWorker":
                    raise
                raise ValueError(
                    f"The cluster lost its workers during a run ({error}): what is finished is kept, start the command again."
                ) from None


def _in_parallel(tasks: Iterator[Any], *, streaming: bool) -> Iterator[dict[str, Any]]:
    """Results as they come; without streaming (Ray's backend has none) batches of as many runs as there are cores."""
    import joblib

    if streaming:
        yield from joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")(tasks)
        return
    with joblib.Parallel(batch_size=1) as parallel:  # one pool for all batches
        while batch := list(itertools.islice(tasks, joblib.effective_n_jobs())):
            yield from parallel(batch)


def _alone(task: Task, work: Callable[[Task], dict[str, Any]]) -> dict[str, Any]:
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(work, task).result()
        except BrokenExecutor:
            return {
                **{name: getattr(task, name) for name in ("key", *task.__dataclass_fields__)},
                "minimum": None,
                "x": [],
                "y": [],
                "true": None,
                "recommended": None,
                "recommended_true": None,
                "seconds": [],
                "error": "the process died during this run, twice",
                "versions": versions(method_of(task.method).needs),
                "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }


@contextlib.contextmanager
def _backend(cluster: str | None, jobs: int) -> Iterator[None]:
    import joblib

    if cluster is None:
        with joblib.parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
        return
    kind, _, address = cluster.partition(":")
    if kind == "dask" and address:
        with _dask_client(address), joblib.parallel_config(backend="dask"):
            yield
    elif kind == "ray" and address:
        _ray_connect(address)
        with joblib.parallel_config(backend="ray", n_jobs=-1):
            yield
    else:
        raise ValueError(f"cluster must be dask:ADDRESS or ray:ADDRESS, such as dask:tcp://host:8786, got {cluster!r}.")


def _dask_client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("A Dask cluster needs the library distributed: pip install 'glasses-lab[cluster]'.") from None
    try:
        return Client(address, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(
            f"No Dask scheduler answers at {address!r} ({type(error).__name__}): check address and port."
        ) from None


def _ray_connect(address: str) -> None:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise ValueError("A Ray cluster needs the library ray: pip install ray.") from None
    try:
        ray.init(address=address, ignore_reinit_error=True)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ValueError(f"No Ray cluster answers at {address!r} ({type(error).__name__}): check the address.") from None
    register_ray()


class _Progress:
    """A bar with the time left on a terminal; a line every half minute elsewhere."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0

    def __enter__(self) -> _Progress:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            speed_estimate_period=600,
        )
        self.live = self.bar.console.is_terminal and self.total > 0
        if self.live:
            self.bar.start()
        self.task = self.bar.add_task(self.title, total=self.total)
        self.begun = self.said = time.monotonic()
        return self

    def advance(self) -> None:
        self.done += 1
        self.bar.advance(self.task)
        now = time.monotonic()
        if not self.live and (now - self.said > 30 or self.done == self.total):
            self.said = now
            left = (now - self.begun) / self.done * (self.total - self.done)
            print(f"{self.title}: {self.done} of {self.total} runs, about {left / 60:.1f} min left", flush=True)

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.bar.stop()
