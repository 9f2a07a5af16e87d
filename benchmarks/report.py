"""The page and the figure made from the measured numbers."""

import json
from pathlib import Path


def write(found: dict, folder: Path) -> None:
    parts = [
        "# Speed and memory, as measured",
        f"Made by `make bench` on {found['date']} ({found['machine']}). One thread each, CPU seconds, "
        f"medians. Ratios in one run are what counts; `exponent` is p of seconds ~ size^p over the larger half of the sizes.",
    ]
    if "note" in found:
        parts.append(found["note"])
    if "before" in found and found.keys() >= {"decisions", "waiting", "events", "far", "large", "study"}:
        parts.append(_before_and_after(found))
    if "decisions" in found:
        parts.append(_decisions(found["decisions"]))
    pages = {"waiting": _waiting, "events": _events, "profile": _profile, "large": _large, "far": _far, "many": _many}
    parts += [page(found[name]) for name, page in pages.items() if name in found]
    if "workers" in found:
        parts.append(_workers(found["workers"], found.get("before", {}).get("workers", "")))
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


def _events(found: dict) -> str:
    rows = [[event, *(f"{found[state][event]:.2f}" for state in ("cold", "warm"))] for event in found["cold"]]
    return (
        "### What happens on the way\n\nA run of 140 evaluations with 2 parameters to which all of this happens in turn, the "
        "objective taking no time: wall seconds of the longest decision from one event to the next, the first decision of the "
        "model left out.\n\n" + _table(["from here on", "cold", "warm"], rows)
    )


def _profile(found: dict) -> str:
    programs = sorted(found["programs"].items(), key=lambda row: -sum(row[1]))
    shown = [[f"`{name}`", *(f"{seconds:.2f}" for seconds in row)] for name, row in programs if sum(row) >= 0.05]
    others = [sum(row[kind] for _, row in programs if sum(row) < 0.05) for kind in range(3)]
    total = [sum(row[kind] for _, row in programs) for kind in range(3)]
    rows = [*shown, ["others", *(f"{seconds:.2f}" for seconds in others)], ["all", *(f"{seconds:.2f}" for seconds in total)]]
    return (
        "## Where a cold run waits\n\nThe same run with 2 parameters without a cache and nothing compiled ahead, wall seconds. "
        f"Besides: {found['imports']:.2f} for the imports and {found['rest']:.2f} for everything that is not compiling, the "
        "decisions themselves included. Most of the time goes to LLVM, and grows with the length of a program, not with the "
        "size of its arrays.\n\n" + _table(["program", "traced", "lowered", "compiled"], rows)
    )


def _before_and_after(found: dict) -> str:
    """Every figure of a goal beside what it was, and the goal."""
    wait, decisions, commands = found["waiting"], found["decisions"], found["study"]["commands"]
    usual = decisions["BoTorch LogEI, defaults (1 step)"]["median"]

    def ratio(name: str) -> float:
        return decisions[name]["median"] / usual

    now = {
        "first decision, cold, 2 parameters": (wait["2"]["cold"]["first"], 4),
        "30 evaluations, cold, 2 parameters": (wait["2"]["cold"]["all"], 12),
        "30 evaluations, cold, 6 parameters": (wait["6"]["cold"]["all"], 20),
        "30 evaluations, warm, 2 parameters": (wait["2"]["warm"]["all"], 5),
        "longest later decision, cold, wall": (max(each["cold"]["longest later"] for each in wait.values()), 1),
        "the same with failures, points under way, a raised budget, data beyond 32, 64, 128": (
            max(found["events"]["cold"].values()),
            1,
        ),
        "default, N = 25, d = 2, 20 left, against BoTorch LogEI": (ratio("glasses TwoStage (default)"), 1.0),
        "one step, the same": (ratio("glasses ExpectedLoss (1 step)"), 0.1),
        "default, N = 60, d = 6, 60 left": (found["far"]["seconds"]["60 observations, 6 parameters, 60 left"], 0.5),
        **{
            f"default, N = {n:,}, d = {d}, {how}": (found["large"][f"{n} observations, {d} parameters"][kind], goal)
            for n, d, goal in ((200, 20, 2), (200, 50, 2), (200, 100, 2), (5000, 20, 5))
            for kind, how in enumerate(("told at once", "in a run"))
        },
        "`glasses ask`": (commands["ask"], 1.5),
        "`glasses show`": (commands["show"], 1),
        "`glasses tell`": (commands["tell"], 0.6),
        "`glasses forecast`": (commands["forecast"], 1.5),
    }
    before = found["before"]["figures"]
    rows = [[name, before.get(name, ""), f"{value:.2f}", f"{goal:g}"] for name, (value, goal) in now.items()]
    return (
        f"## Before and after\n\nCPU seconds unless it says otherwise. Before: {found['before']['commit']}, the same machine "
        "on other days, on which its speed varies by a third.\n\n"
        + _table(["", "before", "now", "goal"], rows)
        + f"\n\n{found['before']['missed']}"
    )


def _large(found: dict) -> str:
    rows = [[name, *(f"{number:.2f}" for number in row)] for name, row in found.items()]
    return (
        "## Large problems\n\nDefault decisions, warm: of an optimiser told everything at once (it fits twice, once for "
        "the record of its model), and the next one of that run. Beyond 1,024 observations the posterior goes through inducing "
        "points; near the best value its mean is off by .04 to .18 standard deviations (median, 2,000 observations), and its "
        "standard deviation is 4 to 12 % larger.\n\n"
        + _table(["", "told at once, CPU seconds", "in a run, CPU seconds", "peak memory so far, GiB"], rows)
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
    engine = found["engine"]
    rows = [[name, f"{seconds:.2f}", f"{seconds / engine['engine']:.2f}"] for name, seconds in engine.items()]
    shell = [
        [f"`glasses {name.split(',')[0]}`{name[len(name.split(',')[0]) :]}", f"{seconds:.2f}"]
        for name, seconds in found["commands"].items()
    ]
    return (
        "## Studies\n\nOne trial of `GlassesSampler` (25 trials done, 20 left, d = 2) against the engine's own decision; wall "
        "seconds on both cores.\n\n"
        + _table(["", "seconds", "against the engine"], rows)
        + "\n\nCommands from the shell on a study of 30 trials, from start to end, programs compiled before; CPU seconds. What "
        "needs the model is kept per state of the study: only the first command after something was told or asked computes it. "
        "Without the model a command is the imports of NumPy, Optuna and SQLAlchemy; with it also that of JAX and the loading "
        "of eight to twelve compiled programs.\n\n" + _table(["command", "CPU seconds"], shell)
    )


def _far(found: dict) -> str:
    rows = [[name, f"{seconds:.2f}"] for name, seconds in found["seconds"].items()]
    parts = [
        [f"{d} parameters, {steps} planned", f"{part:.1%}", f"{moved:.3f}"]
        for d, each in found["gains"].items()
        for steps, (part, moved) in zip((32, 64, 128), each, strict=True)
    ]
    return (
        "## Far ahead and many at once\n\nDefault decisions, warm; the default plans eight ahead, so a long budget costs it "
        "nothing.\n\n"
        + _table(["", "CPU seconds"], rows)
        + "\n\nA loss that plans everything left plans at most 128 evaluations, and so does a forecast. What that leaves out, "
        "with 1,000 left: the part of all there is to gain that the evaluations planned are expected to bring (what is left is "
        "all that later ones can add), and how far the next point lies from the one chosen with 128.\n\n"
        + _table(["", "part of the gain", "next point moved by"], parts)
    )


def _many(found: dict) -> str:
    memory = ", ".join(f"{size:.0f} after {count:,} decisions" for count, size in found["memory"])
    return (
        "## Many optimisers in one process\n\n100 optimisers with 2 parameters, asked and told in turn. "
        f"Resident memory in MiB: {found['before']:.0f} before they are made, {1024 * found['per optimiser']:.0f} KiB more for "
        f"each of them, then {memory}. A decision takes {found['CPU seconds per decision']:.3f} CPU s."
    )


def _workers(found: dict, words: str = "") -> str:
    rows = [[count, *(f"{value:.2f}" for value in row.values())] for count, row in found.items()]
    names = next(iter(found.values()))
    return (
        "## Workers on one database\n\n`glasses worker` on one PostgreSQL study, an objective that takes no time, 120 trials, "
        "on two cores. Decisions are made one at a time, each with all the results and all that is under way: more workers are "
        "for evaluations that take longer than a decision.\n\n" + _table(["workers", *names], rows) + f"\n\n{words}"
    )


def _accelerator(found: dict) -> str:
    values = {name: found[name] for name in ("cpu", "gpu")}
    cases = list(dict.fromkeys(key for each in values.values() for key in (*each["seconds"], *each["left out"])))
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
        + _decisions_on(found)
    )


def _decisions_on(found: dict) -> str:
    """Whole decisions, on the platforms where they were measured."""
    measured = {name.split(", ")[1].upper(): row for name, row in found.items() if name.startswith("decisions, ")}
    if not measured:
        return ""
    keys = list(dict.fromkeys(key for row in measured.values() for key in row if key not in ("device", "jax")))
    devices = "; ".join(f"{name}: {row['device']} (JAX {row['jax']})" for name, row in measured.items())
    rows = [[key, *(f"{row[key]:.3g}" if key in row else "" for row in measured.values())] for key in keys]
    return (
        "\n\nWhole decisions of the default (25 observations, 2 dimensions, 20 left), one at a time and of many runs side by "
        f"side. {devices}. Made by `python -m benchmarks.batch`. One decision is a long chain of small steps (passes of "
        "the fit and of the climb, each with a factorisation of a 32 x 32 matrix), and a card takes longer to start one than "
        "a CPU to finish it: a card pays for many candidates or many runs at once, not for one decision. 16 CPU cores, one run "
        "each, make about 190 decisions per second.\n\n" + _table(["", *measured], rows)
    )


def _growth(axes: dict) -> str:
    return "\n\n".join(
        _table(
            [axis, *(str(row[0]) for row in next(iter(losses.values()))), "exponent"],
            [[name, *(f"{row[1]:.3g}" for row in rows), f"{_exponent(rows):.2f}"] for name, rows in losses.items()],
        )
        for axis, losses in axes.items()
    )


def _exponent(rows: list) -> float:
    """p of seconds ~ size^p over the larger half of the sizes, by least squares."""
    from numpy import log, polyfit

    size, seconds = zip(*rows[len(rows) // 2 :], strict=True)
    return float(polyfit(log(size), log(seconds), 1)[0])


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
