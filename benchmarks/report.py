"""The page and the figure made from the measured numbers."""

import json
from pathlib import Path


def write(found: dict, folder: Path) -> None:
    parts = [
        "# Speed and memory, as measured",
        f"Made by `make bench` on {found['date']} ({found['machine']}). One thread each, CPU seconds, "
        f"medians. Ratios in one run are what counts.",
    ]
    if "note" in found:
        parts.append(found["note"])
    if "decisions" in found:
        parts.append(_decisions(found["decisions"]))
    for name, page in (("waiting", _waiting), ("large", _large)):
        if name in found:
            parts.append(page(found[name]))
    if "first" in found:
        first = found["first"]
        parts.append(
            "## First suggestion in a new process\n\n"
            f"From starting the imports to the first suggestion of the default planner (10 "
            f"observations, 20 left), wall seconds on both cores: "
            f"**{first['warm']:.1f} s** with a warm cache of compiled programs, **{first['cold']:.1f} s** with a cold one."
        )
    if "memory" in found:
        parts.append(
            "## Memory\n\nPeak resident memory of one open-loop decision with horizon 100 and 4,096 "
            "candidates, every one of them valued: "
            f"**{found['memory']:.2f} GiB**."
        )
    if "expectation" in found:
        parts.append(_expectation(found["expectation"]))
    if "growth" in found:
        _draw(found["growth"], folder / "growth.png")
        parts.append(
            "## Growth\n\nTwoStage, all: with everything left planned; the default plans eight evaluations ahead, whatever is "
            "left.\n\n![CPU seconds of one decision against horizon, data and dimension](growth.png)\n\n"
            + _growth(found["growth"])
        )
    if "study" in found:
        parts.append(_study(found["study"]))
    accelerator = folder / "accelerator.json"
    if accelerator.exists():
        parts.append(_accelerator(json.loads(accelerator.read_text())))
    (folder / "benchmarks.md").write_text("\n\n".join(parts) + "\n")


def _waiting(found: dict) -> str:
    names = {
        "first": "first decision of the model",
        "all": "all, imports included",
        "longest later": "longest later decision, wall",
    }
    rows = [
        [f"{d} parameters, {state}", *(f"{row[state][key]:.2f}" for key in names)]
        for d, row in found.items()
        for state in ("cold", "warm")
    ]
    return (
        "## Waiting for a compiler\n\nA run of 30 evaluations with the default in a new process, the objective taking no time, "
        "with an empty and with a filled cache of compiled programs; CPU seconds of both cores. Compiled first: the fit, the "
        "prediction and the climb of EI; then, ahead and at most .6 s per decision, what plans need.\n\n"
        + _table(["", *names.values()], rows)
    )


def _large(found: dict) -> str:
    rows = [[name, f"{seconds:.2f}", f"{peak:.2f}"] for name, (seconds, peak) in found.items()]
    return (
        "## Large problems\n\nOne default decision, told everything at once, warm. Beyond 1,024 observations the posterior "
        "goes through inducing points.\n\n" + _table(["", "CPU seconds", "peak memory so far, GiB"], rows)
    )


def _decisions(found: dict) -> str:
    fixed = found["BoTorch LogEI, noise fixed (1 step)"]["median"]
    usual = found["BoTorch LogEI, defaults (1 step)"]["median"]
    tree = found["BoTorch one-shot tree (4 steps)"]["median"]
    seconds = {name: row["median"] for name, row in found.items()}
    rows = [[name, f"{t:.4f}", f"{t / usual:.2f} / {t / fixed:.2f}", f"{tree / t:.0f}"] for name, t in seconds.items()]
    header = [
        "method",
        "CPU seconds",
        "relative to BoTorch LogEI (defaults / noise fixed)",
        "times faster than the 4-step tree",
    ]
    return (
        "## One decision\n\nFit and search at N = 25, d = 2, 20 evaluations left, warm; all methods "
        "interleaved on the same data sets. Every decision is that of an optimiser that is told the data at once: the default "
        "then also makes the record of its model, with two or three earlier fits that a run has made anyway.\n\n"
        + _table(header, rows)
    )


def _expectation(found: dict) -> str:
    shown = ["median error", "worst error", "trusted", "worst error where trusted"]
    rows = [
        [f"`{name}`", f"{row['seconds']:.3f}", *("" if row[key] is None else f"{row[key]:.2%}" for key in shown)]
        for name, row in found.items()
    ]
    return (
        "## Expected minimum\n\n256 problems with 20 variables from a GP posterior, value and "
        "derivatives; errors of the gain against QMC(2048).\n\n" + _table(["method", "CPU seconds", *shown], rows)
    )


def _study(found: dict) -> str:
    rows = [[name, f"{seconds:.2f}", f"{seconds / found['engine']:.2f}"] for name, seconds in list(found.items())[:3]]
    shell = [
        [f"`glasses {name.split(',')[0]}`{name[len(name.split(',')[0]) :]}", f"{found[name]:.2f}"] for name in list(found)[3:]
    ]
    return (
        "## Studies\n\nOne trial of `GlassesSampler` (25 trials done, 20 left, d = 2) against the engine's own decision; wall "
        "seconds on both cores.\n\n"
        + _table(["", "seconds", "against the engine"], rows)
        + "\n\nCommands from the shell, from start to end, compiled programs in the cache.\n\n"
        + _table(["command", "seconds"], shell)
    )


def _accelerator(found: dict) -> str:
    cases = list(dict.fromkeys(key for each in found.values() for key in (*each["seconds"], *each["left out"])))
    kinds = dict.fromkeys(key.rsplit(", ", 1)[0] for key in cases)
    counts = dict.fromkeys(key.rsplit(", ", 1)[1] for key in cases)

    def cell(key: str) -> str:
        slow, fast = (found[name]["seconds"].get(key) for name in ("cpu", "gpu"))
        shown = [f"{seconds:.3g}" if seconds else "left out" for seconds in (slow, fast)]
        return " / ".join(shown) + (f" ({slow / fast:.0f}x)" if slow and fast else "")

    rows = [[kind, *(cell(f"{kind}, {count}") for count in counts)] for kind in kinds]
    gpu, cpu = found["gpu"], found["cpu"]
    return (
        "## On a GPU\n\nWall seconds to value every candidate, CPU / GPU: 25 observations in 2 dimensions, 256 candidates, "
        f"rollout with all 256 futures. GPU: {gpu['device']} (JAX {gpu['jax']}); CPU: {cpu['device']} (JAX {cpu['jax']}). "
        "The same program: candidates are valued one after the other on a CPU and 512 side by side on a GPU. Left out: what "
        "would have taken more than a minute or came after the time set for the CPU. Not in it: fit, candidates and polish. "
        "There is nothing to switch on: with JAX for CUDA installed (`pip install 'jax[cuda13]'`) programs run on the GPU, and "
        "`JAX_PLATFORMS=cpu` keeps them off it. Made by `python -m benchmarks.accelerator`.\n\n"
        + _table(["loss", *counts], rows)
    )


def _growth(axes: dict) -> str:
    return "\n\n".join(
        _table(
            [axis, *(str(row[0]) for row in next(iter(losses.values())))],
            [[name, *(f"{row[1]:.3g}" for row in rows)] for name, rows in losses.items()],
        )
        for axis, losses in axes.items()
    )


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _draw(axes: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    titles = {
        "horizon": "evaluations left  (N = 25, d = 2)",
        "N": "observations N  (d = 2, 20 left)",
        "d": "dimension d  (N = 25, 20 left)",
    }
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, constrained_layout=True)
    for panel, (axis, losses) in zip(panels, axes.items(), strict=True):
        for name, rows in losses.items():
            panel.plot([r[0] for r in rows], [r[1] for r in rows], "o-", label=name, markersize=4)
        panel.set(xscale="log", yscale="log", xlabel=titles[axis])
        panel.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("CPU seconds of one decision")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
