"""Notebooks without Jupyter: their code cells run in this process, their outputs are compared, the site shows them as pages.

A notebook keeps its outputs, so that it can be read where nothing runs. Run as Jupyter would run it: a cell shows what it
prints, its last expression (as HTML where it has some) and the figures of matplotlib that are open at its end.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_DPI = 72


def remade(text: str, folder: Path, same: Callable[[str, str], bool]) -> str:
    """The notebook with what its cells show now; a cell that shows the same as before is left as it is."""
    notebook = json.loads(text)
    scope: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    with contextlib.chdir(folder), warnings.catch_warnings(), _drawing():
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            count += 1
            shown = run("".join(cell["source"]), scope, f"cell {count}")
            cell["execution_count"] = count
            for each in shown:
                if each["output_type"] == "execute_result":
                    each["execution_count"] = count
            if not _same(cell["outputs"], shown, same):
                cell["outputs"] = shown
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def run(code: str, scope: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The outputs of a cell."""
    body = ast.parse(code, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) and not code.rstrip().endswith(";") else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), name, "exec"), scope)
        value = None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), scope)  # type: ignore[attr-defined]
    shown: list[dict[str, Any]] = []
    if printed.getvalue():
        shown.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        shown.append({"output_type": "execute_result", "metadata": {}, "data": data})
    return shown + [{"output_type": "display_data", "metadata": {}, "data": {"image/png": each}} for each in _figures()]


@contextlib.contextmanager
def _drawing() -> Iterator[None]:
    """Figures are drawn to memory alone."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    backend = mpl.get_backend()
    plt.switch_backend("Agg")
    plt.close("all")
    try:
        yield
    finally:
        plt.close("all")
        plt.switch_backend(backend)


def _figures() -> list[str]:
    """The open figures as PNG in base 64, closed."""
    import matplotlib.pyplot as plt

    found = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="png", dpi=_DPI, bbox_inches="tight", metadata={"Software": None})
        found.append(base64.b64encode(file.getvalue()).decode())
        plt.close(number)
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _same(old: list[dict[str, Any]], new: list[dict[str, Any]], same: Callable[[str, str], bool]) -> bool:
    """Texts say the same; of a picture only that there is one: what it shows follows from what the cells compute."""
    if [(each["output_type"], sorted(each.get("data", {}))) for each in old] != [
        (each["output_type"], sorted(each.get("data", {}))) for each in new
    ]:
        return False
    return all(same(_plain(a), _plain(b)) for a, b in zip(old, new, strict=True))


def _plain(output: dict[str, Any]) -> str:
    return "".join(output.get("text") or output["data"].get("text/plain", []))


def rendered(text: str, stem: str) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and the pictures that it shows by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for each in cell["outputs"]:
            data = each.get("data", {})
            if "image/png" in data:
                name = f"{stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![What the cell above draws]({name})")
            elif "text/html" in data:
                parts.append("".join(data["text/html"]))
            else:
                parts.append(f"```text\n{_plain(each).rstrip()}\n```")
    return "\n\n".join(parts) + "\n", pictures
