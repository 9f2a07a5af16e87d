"""A lock file out of the pins of an environment: ``pip freeze --all`` on the way in, each pin with its hashes on the way out.

For environments whose requirements no resolver accepts, because a library asks for other versions than those it runs with
(``make lock-peers``). torch is left out, which the Makefile installs first, and so are pip and what is installed from the
repository. Needs pip-tools.
"""

import sys

from pip._internal.req.constructors import install_req_from_line
from piptools.repositories import PyPIRepository

LEFT_OUT = {"pip", "torch"}


def pins(lines: list[str]) -> list[str]:
    """``name==version``, sorted; a local part of the version is not one that an index knows."""
    found = [line.strip().split("+")[0] for line in lines if "==" in line and not line.startswith(("-e", "#"))]
    return sorted((pin for pin in found if pin.split("==")[0] not in LEFT_OUT), key=str.lower)


def locked(pin: str, index: PyPIRepository) -> str:
    """The pin as pip reads it with --require-hashes."""
    hashes = sorted(index.get_hashes(install_req_from_line(pin)))
    if not hashes:
        raise SystemExit(f"No index knows {pin}: install a version that one does.")
    return " \\\n".join([pin, *(f"    --hash={each}" for each in hashes)])


if __name__ == "__main__":
    print(f"# The environment of `make {sys.argv[1]}`; where it has torch==2.13.0, the Makefile installs that first.")
    index = PyPIRepository([], cache_dir="")
    with index.allow_all_wheels():
        print("\n".join(locked(pin, index) for pin in pins(sys.stdin.readlines())))
