#!/bin/sh
# A bench session: ask for an experiment, do it, type in what came out. Here a line of awk stands for the person.
set -eu
cd "$(dirname "$0")"

glasses ask study.toml
glasses tell study.toml 0.31                                       # the one that is open
glasses tell study.toml --at concentration=0.1 --at minutes=30 --at solvent=water 0.42     # measured last year

glasses ask study.toml -n 3 --format json > experiments.json       # three at a time, for a rack
python3 - <<'PYTHON' > results.csv
import json, math
print("trial,value")
for each in json.load(open("experiments.json")):
    p = each["params"]
    colour = math.exp(-(math.log10(p["concentration"]) + 0.8) ** 2) * (1 - math.exp(-p["minutes"] / 20))
    print(f"{each['trial']},{colour * (0.9 if p['solvent'] == 'water' else 1.0):.3f}")
PYTHON
glasses tell study.toml --csv results.csv

glasses ask study.toml
glasses tell study.toml --failed                                   # spilled: kept, and the search keeps away
glasses show study.toml
glasses plot study.toml --out dye.png
glasses export study.toml
