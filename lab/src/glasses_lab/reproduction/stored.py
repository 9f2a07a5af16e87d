"""The results that tables are made from: fresh records of a campaign, or the rows that are kept in the repository.

The kept rows are one CSV file per suite in ``lab/results``, a line per run, written by ``glasses-lab campaign table --rows``.
They are part of the repository and of no package. A lab that was installed without a checkout has none; ``--results`` names
their folder.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from glasses_lab.campaign.measures import Row, measure, read_rows
from glasses_lab.campaign.store import read_records

Rows = tuple[list[Row], dict[str, str]]  # and what they are about
Loaded = dict[str, Rows]
FOLDER = Path(__file__).parents[3] / "results"


def stored(name: str, folder: Path | None = None) -> Rows:
    """The kept rows of this name, from ``folder`` or from the repository that this file is part of."""
    path = (folder or FOLDER) / f"{name}.csv"
    if not path.is_file():
        raise ValueError(
            f"The stored results {path} are not there: they are part of the repository (lab/results) and not of the package, "
            "so give their folder, or that of fresh results, with --results."
        )
    return read_rows(path)


def fresh(suite: str, path: Path, wanted: Collection[str]) -> Rows | None:
    """Rows of the wanted runs in a file of records; None if it has none of them."""
    records = [record for record in read_records(path) if record["key"] in wanted]
    return ([measure(record) for record in records], about(suite, records)) if records else None


def about(suite: str, records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What was run, when and with which versions."""
    versions: dict[str, set[str]] = {}
    for record in records:
        for library, version in record["versions"].items():
            versions.setdefault(library, set()).add(version)
    days = sorted(record["began"][:10] for record in records)
    return {
        "suite": suite,
        "command": f"glasses-lab campaign run {suite}",
        "runs": str(len(records)),
        "date": days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}",
        "versions": ", ".join(f"{library} {'/'.join(sorted(found))}" for library, found in sorted(versions.items())),
    }
