"""Searches for hyperparameters compared: ``python -m benchmarks.searches`` (``make searches``). Resumable.

``GlassesSearchCV``, ``RandomizedSearchCV``, ``HalvingRandomSearchCV`` and a study of Optuna's TPE over ``cross_val_score`` tune
four small estimators on data that scikit-learn brings. Two thirds of the rows are searched on, by the same three folds for all
methods of a seed, one third is kept to judge what was found. A finished search is one line of ``docs/searches.jsonl`` and is
not done again; the table and the picture of ``docs/how_to/sklearn.md`` are made from that file (``--page``: only they).

    evaluation   a configuration fitted and scored on all folds of all rows; on a part of the rows it counts as that part
    gap          (best score so far - median of random configurations) / (best score of any method - that median)   [eq:gap]
                 each for one task and seed, by cross-validation; the configurations are those of the random search
    held out     the score on the rows kept, of the best configuration fitted to all the others
    overhead     median CPU seconds of a search less those of its fits and scores, in a process that has searched before

Halving spends its evaluations in three rounds, on a ninth, a third and all of the rows, so it is run once for each budget.
What it found is scored once more on all rows, which is not counted.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.stats import loguniform, randint, uniform, wilcoxon

from glasses_lab.campaign.statistics import holm

DOCS = Path(__file__).parents[1] / "docs"
TIE = 1e-9
KEPT, PAGE, PICTURE = DOCS / "searches.jsonl", DOCS / "how_to" / "sklearn.md", DOCS / "how_to" / "sklearn.png"
BUDGETS, FOLDS, SEEDS = (10, 20, 30), 3, 10
METHODS = {
    "glasses": "GlassesSearchCV",
    "random": "RandomizedSearchCV",
    "halving": "HalvingRandomSearchCV",
    "tpe": "Optuna TPE",
}


def svm(**given):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return make_pipeline(StandardScaler(), SVC(max_iter=20_000, **given))


def boosting():
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(random_state=0)


def network():
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), MLPClassifier((16,), max_iter=20, tol=0.0, random_state=0))


TASKS = {
    "svm, digits": ("digits", svm, "accuracy", {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 10.0)}),
    "svm with kernels, cancer": (
        "cancer",
        svm,
        "accuracy",
        {
            "svc__C": loguniform(1e-3, 1e3),
            "svc__gamma": loguniform(1e-5, 10.0),
            "svc__coef0": uniform(0.0, 1.0),
            "svc__kernel": ["rbf", "poly", "sigmoid"],
        },
    ),
    "boosting, cancer": (
        "cancer",
        boosting,
        "neg_log_loss",
        {
            "n_estimators": randint(5, 41),
            "learning_rate": loguniform(1e-2, 1.0),
            "max_depth": randint(1, 6),
            "subsample": uniform(0.3, 0.7),
            "max_features": ["sqrt", "log2"],
        },
    ),
    "network, iris": (
        "iris",
        network,
        "neg_log_loss",
        {
            "mlpclassifier__alpha": loguniform(1e-6, 1.0),
            "mlpclassifier__learning_rate_init": loguniform(1e-4, 1.0),
            "mlpclassifier__batch_size": randint(8, 65),
            "mlpclassifier__activation": ["relu", "tanh", "logistic"],
        },
    ),
}


@lru_cache
def rows(data, seed):
    """Inputs and classes to search on, and those kept: two thirds and one third."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris
    from sklearn.model_selection import train_test_split

    X, y = {"digits": load_digits, "cancer": load_breast_cancer, "iris": load_iris}[data](return_X_y=True)
    if data == "digits":
        X, y = X[::3], y[::3]
    return train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)


class Clocked:
    """A task with its rows and folds, and the CPU seconds of what ``score`` did."""

    def __init__(self, task, seed):
        from sklearn.model_selection import StratifiedKFold

        self.data, self.estimator, self.scoring, self.space = TASKS[task]
        self.X, self.held, self.y, self.classes = rows(self.data, seed)
        self.cv = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        self.seed, self.seconds = seed, 0.0

    def score(self, params):
        """The mean score of a configuration over the folds."""
        from sklearn.model_selection import cross_val_score

        begun = time.process_time()
        estimator = self.estimator().set_params(**params)
        found = float(np.mean(cross_val_score(estimator, self.X, self.y, cv=self.cv, scoring=self.scoring)))
        self.seconds += time.process_time() - begun
        return found

    def held_out(self, params):
        """The score on the rows kept."""
        from sklearn.metrics import get_scorer

        fitted = self.estimator().set_params(**params).fit(self.X, self.y)
        return float(get_scorer(self.scoring)(fitted, self.held, self.classes))


def searched(search, clocked):
    """Scores in order, the best configuration and the overhead of a search of scikit-learn's kind."""
    from sklearn.model_selection import _search

    fit, inside = _search._fit_and_score, 0.0

    def timed(*given, **named):
        nonlocal inside
        begun = time.process_time()
        result = fit(*given, **named)
        inside += time.process_time() - begun
        return result

    begun = time.process_time()
    with mock.patch.object(_search, "_fit_and_score", timed):
        search.fit(clocked.X, clocked.y)
    overhead = time.process_time() - begun - inside
    return search.cv_results_["mean_test_score"].tolist(), search.best_params_, overhead


def by_glasses(clocked):
    from glasses.sklearn import GlassesSearchCV

    given = {"cv": clocked.cv, "scoring": clocked.scoring, "refit": False, "random_state": clocked.seed}
    return [searched(GlassesSearchCV(clocked.estimator(), clocked.space, budget=BUDGETS[-1], **given), clocked)]


def by_random(clocked):
    from sklearn.model_selection import RandomizedSearchCV

    given = {"cv": clocked.cv, "scoring": clocked.scoring, "refit": False, "random_state": clocked.seed}
    return [searched(RandomizedSearchCV(clocked.estimator(), clocked.space, n_iter=BUDGETS[-1], **given), clocked)]


def by_halving(clocked):
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingRandomSearchCV

    found = []
    for budget in BUDGETS:
        search = HalvingRandomSearchCV(
            clocked.estimator(),
            clocked.space,
            n_candidates=3 * budget,  # a ninth, a third and all of the rows: 3 budget (1/9 + 1/9 + 1/9) evaluations
            factor=3,
            min_resources=len(clocked.y) // 9,
            cv=clocked.cv,
            scoring=clocked.scoring,
            refit=False,
            random_state=clocked.seed,
        )
        _, params, overhead = searched(search, clocked)
        found.append(([clocked.score(params)], params, overhead))
    return found


def by_tpe(clocked):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def suggested(trial):
        params = {}
        for name, given in clocked.space.items():
            if isinstance(given, list):
                params[name] = trial.suggest_categorical(name, given)
            elif given.dist.name == "randint":
                low, high = given.support()
                params[name] = trial.suggest_int(name, int(low), int(high))
            else:
                low, high = given.support()
                params[name] = trial.suggest_float(name, float(low), float(high), log=given.dist.name == "loguniform")
        return params

    begun = time.process_time()
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=clocked.seed))
    study.optimize(lambda trial: clocked.score(suggested(trial)), n_trials=BUDGETS[-1])
    overhead = time.process_time() - begun - clocked.seconds
    return [([trial.value for trial in study.trials], study.best_params, overhead)]


SEARCHES: dict[str, Callable] = {"glasses": by_glasses, "random": by_random, "halving": by_halving, "tpe": by_tpe}


def run(task, method, seed):
    """One line of the file: scores in order (of halving one for each budget), the score held out, the overhead."""
    from threadpoolctl import threadpool_limits

    clocked = Clocked(task, seed)
    begun = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of networks that have not converged
        found = SEARCHES[method](clocked)
        _, params, overhead = found[-1]
        held = clocked.held_out(params)
    scores = [round(score, 6) for part, _, _ in found for score in part]
    return {
        "task": task,
        "method": method,
        "seed": seed,
        "scores": scores,
        "held_out": round(held, 6),
        "overhead": round(overhead, 3),
        "seconds": round(time.process_time() - begun, 2),
    }


def read(path=KEPT):
    """Every line, by task, method and seed."""
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(row["task"], row["method"], row["seed"]): row for row in lines}


def gaps(found):
    """Method -> (searches, budgets) of [eq:gap], in one order of tasks and seeds; those that every method has done."""
    done = sorted({(task, seed) for task, _, seed in found})
    done = [key for key in done if all((key[0], method, key[1]) in found for method in METHODS)]
    out = {method: [] for method in METHODS}
    for task, seed in done:
        row = {method: found[task, method, seed]["scores"] for method in METHODS}
        usual, best = float(np.median(row["random"])), max(max(scores) for scores in row.values())
        for method, scores in row.items():
            reached = scores if method == "halving" else [max(scores[:budget]) for budget in BUDGETS]
            out[method].append([(score - usual) / (best - usual) for score in reached])
    return done, {method: np.array(each) for method, each in out.items()}


def table(found):
    """The table of the page: mean gap after so many evaluations, and GlassesSearchCV against each at the end, paired."""
    done, gap = gaps(found)
    heads = [f"gap after {budget}" for budget in BUDGETS] + [
        "ours − its",
        "wins : losses",
        "p (Holm)",
        "held out",
        "overhead, s",
    ]
    lines = [["search", *heads], ["---"] * (len(heads) + 1)]
    others = [method for method in METHODS if method != "glasses"]
    ahead = {method: gap["glasses"][:, -1] - gap[method][:, -1] for method in others}
    p = dict(zip(others, holm([wilcoxon(each[np.abs(each) > TIE]).pvalue for each in ahead.values()]), strict=True))
    for method, name in METHODS.items():
        cells = [name, *(estimate(gap[method][:, k]) for k in range(len(BUDGETS)))]
        if method in others:
            held = [found[task, "glasses", seed]["held_out"] - found[task, method, seed]["held_out"] for task, seed in done]
            shown = "< .001" if p[method] < 0.001 else f"{p[method]:.3f}".lstrip("0")
            cells += [estimate(ahead[method], sign=True), wins(ahead[method]), shown, wins(held)]
        else:
            cells += [""] * 4
        overhead = np.median([found[task, method, seed]["overhead"] for task, seed in done])
        lines.append([*cells, f"{overhead:.2g}"])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def wins(differences):
    """How often ours is better and worse; ties are neither."""
    d = np.asarray(differences)
    return f"{int(np.sum(d > TIE))} : {int(np.sum(d < -TIE))}"


def estimate(values, sign=False):
    """A mean with its standard error."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    return f"{values.mean():{'+' if sign else ''}.3f} ± {error:.3f}".replace("-", "−")


def about(found):
    """What was run."""
    done, _ = gaps(found)
    tasks = len({task for task, _ in done})
    seconds = sum(each["seconds"] for each in found.values())
    versions = json.loads(KEPT.with_suffix(".json").read_text(encoding="utf-8"))["versions"]
    return (
        f"`make searches`: {tasks} tasks, {len(done) // max(tasks, 1)} seeds, {len(done)} searches of each kind, "
        f"{seconds / 60:.0f} CPU minutes. Versions: {versions}."
    )


def draw(found, path):
    """One panel per task: the best score so far, mean over the seeds, against the number of evaluations."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"glasses": "#D55E00", "random": "0.45", "halving": "#009E73", "tpe": "#0072B2"}
    done, _ = gaps(found)
    figure, panels = plt.subplots(1, len(TASKS), figsize=(3.3 * len(TASKS), 3.3), layout="constrained")
    for axis, (task, (_, _, scoring, _)) in zip(panels, TASKS.items(), strict=True):
        lowest, highest = [], []
        for method, name in METHODS.items():
            scores = np.array([found[task, method, seed]["scores"] for each, seed in done if each == task])
            best = scores if method == "halving" else np.maximum.accumulate(scores, axis=1)
            mean, error = best.mean(axis=0), best.std(axis=0, ddof=1) / math.sqrt(len(best))
            if method == "halving":
                axis.errorbar(BUDGETS, mean, error, fmt="s", color=colours[method], markersize=5, capsize=3, label=name)
            else:
                count = np.arange(1, best.shape[1] + 1)
                axis.plot(count, mean, color=colours[method], label=name)
                axis.fill_between(count, mean - error, mean + error, color=colours[method], alpha=0.15, linewidth=0)
                lowest.append(mean[7])
            highest.append((mean + error).max())
        axis.set(title=task, xlabel="evaluations", ylabel={"neg_log_loss": "− log loss"}.get(scoring, scoring), xlim=(1, None))
        edge = 0.3 * (max(highest) - min(lowest))
        axis.set_ylim(min(lowest) - edge, max(highest) + 0.2 * edge)
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(METHODS), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def filled(page, found):
    """The page with the table of the kept searches."""
    begin, end = "<!-- table searches -->", "<!-- end -->"
    before, rest = page.split(begin, 1)
    return f"{before}{begin}\n\n{table(found)}\n\n{about(found)}\n\n{end}{rest.split(end, 1)[1]}"


def main():
    """Run what is missing, then the picture and the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--page", action="store_true", help="run nothing: the picture and the table from the kept searches")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each task (default %(default)s)")
    options = parser.parse_args()
    found = read()
    todo = [(task, method, seed) for seed in range(options.seeds) for task in TASKS for method in METHODS]
    for key in [] if options.page else [key for key in todo if key not in found]:
        row = found[key] = run(*key)
        with KEPT.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{row['task']:26}{row['method']:10}{row['seed']:3}  best {max(row['scores']):.4f}  {row['seconds']:6.1f} s",
            flush=True,
        )
    if not options.page:
        versions = ", ".join(f"{name} {version(name)}" for name in ("glasses", "scikit-learn", "optuna", "jax", "numpy"))
        KEPT.with_suffix(".json").write_text(json.dumps({"versions": versions}) + "\n", encoding="utf-8")
    draw(found, PICTURE)
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
