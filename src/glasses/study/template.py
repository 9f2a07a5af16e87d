"""What ``glasses new`` writes: a study that runs as it is, with a comment for everything that can be changed."""

from __future__ import annotations

from pathlib import Path

STUDY = """\
# A study: what is varied, what is measured, how often. Run it:   glasses run {file}
# Look at it:   glasses show {file}     Draw it:   glasses plot {file}

name = "{name}"
direction = "minimize"            # or "maximize"
budget = 20                       # all evaluations; may be raised later, then run again

# storage = "sqlite:///{name}.db"                            # the default: a file beside this one
# storage = "postgresql://user@host/database"                # one line for any number of machines
# best_possible = 0.0             # a value that none can beat, if you know one (maximizing a yield: 100); for forecasts
# seed = 1                        # same seed, same suggestions; by default made from the name
# n_initial = 6                   # evaluations before the model decides
# noise = 0.1                     # standard deviation of one evaluation; 0: exact; default: learned
# count_failures = false          # failed evaluations cost no budget
# retries = 2                     # how often an evaluation whose worker died is tried again
# heartbeat = 10                  # seconds between two signs of life of a worker
# stop = {{ price = 0.01 }}         # stop early, once no evaluation is expected to buy so much; or target = 0.5, no_gain = true

[objective]
python = "{module}:measure"       # a function beside this file, called with the parameters by name
# command = "./simulate --temperature {{temperature}} --catalyst {{catalyst}} --stages {{stages}} --rate {{rate}}"
#                                 # or any program: its last line of output is a number, or {{"value": 1.2, "anything": "else"}}
# timeout = 3600                  # seconds until a command is stopped and counted as failed
# Without [objective] a person evaluates:   glasses ask {file}   and   glasses tell {file} 1.23

[parameters]
temperature = [20.0, 90.0]
rate = {{ low = 0.001, high = 1.0, log = true }}
stages = {{ type = "int", low = 1, high = 8 }}
catalyst = {{ choices = ["none", "copper", "zeolite"] }}
"""

OBJECTIVE = '''\
"""A made-up reactor, to be replaced by your own: returns the number to be minimised, here the logarithm of the cost."""

import math


def measure(temperature, rate, stages, catalyst):
    best = {"none": 75.0, "copper": 62.0, "zeolite": 55.0}[catalyst]
    if catalyst == "zeolite" and temperature > 80.0:
        raise RuntimeError("the zeolite decomposed")  # an evaluation may fail: it is kept, and the search stays away
    reached = math.exp(-(((temperature - best) / 18.0) ** 2) - 0.5 * (math.log10(rate) + 1.3) ** 2)
    reached *= 1.0 - 0.6**stages
    price = 1.0 + 0.12 * stages + {"none": 0.0, "copper": 0.2, "zeolite": 0.45}[catalyst]
    return math.log(price / (0.02 + reached))
'''


BENCH = """\
# A study at the bench: a person does the experiments. Each morning:
#
#   glasses ask {file}                    the next experiment
#   glasses tell {file} 3.4               what was measured; `failed` if it could not be (it then stays away from there)
#   glasses show {file}                   best so far, what is recommended, the plan
#   glasses forecast {file}               what the rest of the budget is expected to buy
#   glasses correct {file} --trial 3 3.4  after a slip: nothing is lost, the history keeps what was
#   glasses serve {file}                  all of it on a page in the browser
#
# Everything below may be changed later. What was measured outside a narrowed range stays in the model.

name = "{name}"
direction = "maximize"            # or "minimize"
unit = "%"                        # of what is measured
budget = 20                       # all experiments; say what you can really do
# noise = 0.5                     # standard deviation of one measurement, if you know it; learned otherwise
# best_possible = 100.0           # a value that none can beat, if there is one; for forecasts
# n_initial = 6                   # experiments that are spread out before the model decides
# count_failures = false          # failed experiments cost no budget
# stop = {{ price = 0.5 }}          # say so when no experiment is expected to improve the best value by so much

[parameters]
temperature = {{ low = 20.0, high = 90.0, unit = "°C" }}
time = {{ type = "int", low = 5, high = 60, step = 5, unit = "min" }}      # whole steps only
concentration = {{ low = 0.01, high = 1.0, log = true, unit = "mol/l" }}  # over several powers of ten
catalyst = {{ choices = ["none", "copper", "zeolite"] }}                  # without an order

# Added later, with the value that the experiments so far had:
# stirring = {{ low = 100, high = 800, unit = "1/min", default = 300 }}
"""


def write_bench(path: Path) -> Path:
    """Write a study without an objective beside nothing that exists; the file."""
    _check_free(path, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BENCH.format(name=path.stem, file=path), encoding="utf-8")
    return path


def _check_free(study: Path, *files: Path) -> None:
    if study.suffix != ".toml":
        raise ValueError(f"A study file ends in .toml: glasses new {study.with_suffix('.toml')}.")
    if not f"{study.stem}_objective".isidentifier() or not study.stem.isprintable():
        raise ValueError(f"The name {study.stem!r} must be made of letters, digits and _, and begin with a letter.")
    for each in files:
        if each.exists():
            raise ValueError(f"{each} exists and is not overwritten: give another name.")


def write_study(path: Path) -> list[Path]:
    """Write the starter beside nothing that exists; the files written."""
    module = f"{path.stem}_objective"
    code = path.with_name(f"{module}.py")
    _check_free(path, path, code)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STUDY.format(name=path.stem, file=path, module=module), encoding="utf-8")
    code.write_text(OBJECTIVE, encoding="utf-8")
    return [path, code]
