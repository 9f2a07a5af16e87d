"""Every requirement of the two packages, with all extras: what ``make lock`` resolves.

The packages themselves are left out. They are installed from the repository, and the index may know others of their name.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = (ROOT / "pyproject.toml", ROOT / "lab" / "pyproject.toml")


def requirements() -> list[str]:
    """Sorted, each once."""
    projects = [tomllib.loads(path.read_text())["project"] for path in FILES]
    own = {project["name"] for project in projects}
    lists = [extra for p in projects for extra in (p["dependencies"], *p.get("optional-dependencies", {}).values())]
    return sorted({each for some in lists for each in some if re.match(r"[\w.-]+", each)[0] not in own})


if __name__ == "__main__":
    print("\n".join(requirements()))
