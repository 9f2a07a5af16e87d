"""``glasses report``: a study as one HTML file that needs nothing else, now or in ten years.

Tables and sentences are HTML; the charts are drawn by the libraries and the data inside the file. A policy in its head forbids
every request, and every script but those whose hashes it names: a colleague may open it as safely as a picture.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import glasses
from glasses.page import kept
from glasses.page.model import forecast_of, model_of
from glasses.page.security import CHART_STYLES
from glasses.page.state import page_state
from glasses.page.thinking import has_values
from glasses.study.report import shown
from glasses.study.stored import StoredStudy

HERE = Path(__file__).parent
TEMPLATES = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.policies["json.dumps_kwargs"] = {"sort_keys": False, "default": str, "allow_nan": False}
TEMPLATES.filters["shown"] = lambda value: "" if value is None else shown(value)
_SCRIPTS = ("vendor/charts.min.js", "charts.js", "report.js")


def report_of(stored: StoredStudy) -> str:
    """The report, with the model's numbers from disk or computed."""
    if not has_values(stored):
        return report_from(stored, None)
    key = kept.model_key(stored)
    model = kept.recall(key)
    if model is None:
        optimizer = stored.optimizer()
        model = model_of(stored, optimizer)
        model["forecast"] = forecast_of(stored, optimizer)
        kept.keep(key, model)
    return report_from(stored, model)


def report_from(stored: StoredStudy, model: dict[str, Any] | None) -> str:
    """The report with these numbers of the model, or without it."""
    scripts = [_inline(HERE / "static" / name) for name in _SCRIPTS]
    style = (HERE / "static" / "page.css").read_text(encoding="utf-8")
    hashes = " ".join(_hash(each) for each in scripts)
    policy = f"default-src 'none'; script-src {hashes}; style-src {_hash(style)} {CHART_STYLES}; img-src data:; base-uri 'none'"
    state = page_state(stored)
    return TEMPLATES.get_template("report.html").render(
        state=state,
        model=model,
        data={"state": state, "model": model or {}},
        policy=policy,
        scripts=[Markup(each) for each in scripts],
        style=Markup(style),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=glasses.__version__,
        history=[entry for entry in stored.history() if entry["key"] is not None],
    )


def _inline(path: Path) -> str:
    """A script as it can stand inside a page."""
    text = path.read_text(encoding="utf-8")
    assert "</script" not in text.lower()
    assert "<!--" not in text
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
