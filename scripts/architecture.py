"""The map of the packages: docs/architecture.svg and the table in docs/architecture.md, made from the import statements.

    python scripts/architecture.py            writes both
    python scripts/architecture.py --check    says whether they are what the source says

Nodes are the packages below ``glasses`` and ``glasses_lab`` and the modules directly in them; an arrow points from who imports
to what is imported. Imports for type checkers only are left out.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = {"glasses": ROOT / "src" / "glasses", "glasses_lab": ROOT / "lab" / "src" / "glasses_lab"}
PAGE, PICTURE = ROOT / "docs" / "architecture.md", ROOT / "docs" / "architecture.svg"
BEGIN, END = "<!-- packages: made by scripts/architecture.py -->", "<!-- end of packages -->"
APART = {"glasses.__init__", "glasses.__main__", "glasses.tiny", "glasses_lab.__init__", "glasses_lab.__main__"}


def node_of(module: str) -> str:
    """glasses.search.value -> glasses.search."""
    return ".".join(module.split(".")[:2])


def modules() -> dict[str, Path]:
    """Full name of every module -> its file."""
    found = {}
    for package, root in SOURCES.items():
        for path in sorted(root.rglob("*.py")):
            parts = (package, *path.relative_to(root).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)] = path
    return found


def imported(path: Path) -> set[str]:
    """Modules and names that a file imports from the two packages, when it runs."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in SOURCES:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.split(".")[0] in SOURCES)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def graph() -> dict[str, set[str]]:
    """Node -> the nodes it imports."""
    known = modules()
    nodes = {node_of(name) for name in known} - APART
    edges: dict[str, set[str]] = {node: set() for node in nodes}
    for name, path in known.items():
        if node_of(name) in nodes:
            targets = {node_of(each) for each in imported(path)} & nodes
            edges[node_of(name)] |= targets - {node_of(name)}
    return edges


def layers(edges: dict[str, set[str]]) -> list[list[str]]:
    """Nodes by the longest chain of imports below them; a cycle is an error."""
    depth: dict[str, int] = {}

    def measure(node: str, above: tuple[str, ...] = ()) -> int:
        if node in above:
            raise ValueError(f"Imports go round in a circle: {' -> '.join([*above[above.index(node) :], node])}.")
        if node not in depth:
            depth[node] = 1 + max((measure(each, (*above, node)) for each in edges[node]), default=-1)
        return depth[node]

    for node in edges:
        measure(node)
    return [sorted(node for node in edges if depth[node] == level) for level in range(max(depth.values()) + 1)]


def summary(node: str) -> str:
    """The first sentence of the package's docstring."""
    package, _, part = node.partition(".")
    root = SOURCES[package]
    path = root / part / "__init__.py" if (root / part).is_dir() else root / f"{part}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def table(edges: dict[str, set[str]]) -> str:
    """Markdown: every node, what it is, what it imports; top layer first."""
    lines = ["| package | what it is | imports |", "|---|---|---|"]
    for layer in reversed(layers(edges)):
        for node in layer:
            below = ", ".join(each.removeprefix("glasses.") for each in sorted(edges[node])) or "nothing"
            lines.append(f"| `{node}` | {summary(node)} | {below} |")
    return "\n".join(lines)


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the arrows that a longer way already shows."""

    def reachable(node: str) -> set[str]:
        found = set()
        for each in edges[node]:
            found |= {each} | reachable(each)
        return found

    return {
        node: {each for each in below if not any(each in reachable(other) for other in below)} for node, below in edges.items()
    }


def picture(edges: dict[str, set[str]]) -> str:
    """SVG: one row per layer, arrows downwards; only those that no longer way shows."""
    width, height, gap_x, gap_y, margin = 128, 34, 22, 46, 24
    rows = list(reversed(layers(edges)))
    full = max(len(row) for row in rows) * (width + gap_x) - gap_x + 2 * margin
    place = {}
    for level, row in enumerate(rows):
        used = len(row) * (width + gap_x) - gap_x
        for k, node in enumerate(row):
            place[node] = ((full - used) / 2 + k * (width + gap_x), margin + level * (height + gap_y))
    total = margin * 2 + len(rows) * (height + gap_y) - gap_y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full:.0f} {total:.0f}" font-family="sans-serif">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#667"/></marker></defs>',
        f'<rect width="{full:.0f}" height="{total:.0f}" fill="#ffffff"/>',
    ]
    for node, below in sorted(reduced(edges).items()):
        for each in sorted(below):
            (x1, y1), (x2, y2) = place[node], place[each]
            begin, end = (x1 + width / 2, y1 + height), (x2 + width / 2, y2 - 2)
            bend = (end[1] - begin[1]) / 2
            path = [begin, (begin[0], begin[1] + bend), (end[0], end[1] - bend), end]
            first, *rest = (f"{x:.1f},{y:.1f}" for x, y in path)
            style = 'fill="none" stroke="#99a" stroke-width="1.2" marker-end="url(#tip)"'
            parts.append(f'<path d="M{first} C{" ".join(rest)}" {style}/>')
    for node, (x, y) in sorted(place.items()):
        fill = "#fff3dc" if node.startswith("glasses_lab") else "#e8f0fb"
        label = node.removeprefix("glasses.").replace("glasses_lab.", "lab: ")
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="#557"/>'
            f'<text x="{x + width / 2:.1f}" y="{y + height / 2 + 5:.1f}" font-size="13" text-anchor="middle">{label}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def page(text: str, edges: dict[str, set[str]]) -> str:
    """The page with the table between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table(edges)}\n{END}{rest.split(END)[1]}"


def main(arguments: list[str]) -> int:
    edges = graph()
    made = {PAGE: page(PAGE.read_text(encoding="utf-8"), edges), PICTURE: picture(edges)}
    if arguments == ["--check"]:
        stale = [path.name for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        print(f"Not what the source says: {', '.join(stale)}; run scripts/architecture.py." if stale else "The map is right.")
        return 1 if stale else 0
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
