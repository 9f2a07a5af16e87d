"""Every requirement of the two packages, with all extras but those that need torch: what ``make lock`` resolves.

torch lives in the peers' environment alone (``make peers``). The packages themselves are left out. They are installed from
the repository, and the index may know others of their name.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEED_TORCH = {"ax", "botorch"}
FILES = (ROOT / "pyproject.toml", ROOT / "lab" / "pyproject.toml")


def requirements() -> list[str]:
    """Sorted, each once."""
    projects = [tomllib.loads(path.read_text())["project"] for path in FILES]
    own = {project["name"] for project in projects}
    extras = [(name, extra) for p in projects for name, extra in p.get("optional-dependencies", {}).items()]
    lists = [p["dependencies"] for p in projects] + [extra for name, extra in extras if name not in NEED_TORCH]
    return sorted({each for some in lists for each in some if re.match(r"[\w.-]+", each)[0] not in own})


if __name__ == "__main__":
    print("\n".join(requirements()))
