"""The charts in a real browser, out of given numbers: every kind of chart, with the parts of Plot and D3 that are there."""

import json
import math
from pathlib import Path

import pytest

import glasses.page

STATIC = Path(glasses.page.__file__).parent / "static"
NUMBER = {"name": "temperature", "kind": "float", "low": 20.0, "high": 90.0, "log": False, "unit": "°C"}
LOG = {"name": "rate", "kind": "float", "low": 0.001, "high": 1.0, "log": True, "unit": ""}
WHOLE = {"name": "stages", "kind": "int", "low": 1, "high": 8, "log": False, "unit": ""}
CHOICE = {"name": "catalyst", "kind": "choice", "values": ["none", "copper"], "choices": ["none", "copper"], "unit": ""}
WIDTH, HEIGHT = 12, 8
DRAW = """
([state, model, forecast]) => {
  document.body.innerHTML = "<div></div><figure></figure>";
  const [charts, ahead] = document.body.children, opened = [];
  GlassesCharts.all(charts, state, model, (trial) => opened.push(trial));
  GlassesCharts.forecast(ahead, state, forecast);
  const tips = [];
  for (const figure of document.querySelectorAll("figure")) {
    const svg = [...figure.querySelectorAll("svg")].at(-1), box = svg.getBoundingClientRect();
    let texts = 0;
    for (let i = 1; i < 60; i++) for (let j = 1; j < 10; j++) {
      const [clientX, clientY] = [box.left + box.width * i / 60, box.top + box.height * j / 10];
      const place = { bubbles: true, pointerType: "mouse", clientX, clientY };
      for (const kind of ["pointerenter", "pointermove"]) svg.dispatchEvent(new PointerEvent(kind, place));
      texts = Math.max(texts, svg.querySelectorAll("g[aria-label=tip] text").length);
      if (texts) break;
    }
    tips.push(texts);
  }
  const all = (selector) => [...document.querySelectorAll(selector)];
  return {
    tips, svgs: all("svg").length, captions: all("figcaption").map((each) => each.textContent),
    levels: all("g[aria-label=contour] path").map((each) => each.getAttribute("d")),
  };
}
"""


@pytest.fixture(scope="module")
def draw(browser):
    """Draws all charts of a study with these parameters; whatever the browser complains about fails the test."""
    page = browser.new_page(viewport={"width": 900, "height": 900})
    complaints = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content("<body></body>")
    for name in ("vendor/charts.min.js", "charts.js"):
        page.add_script_tag(content=(STATIC / name).read_text(encoding="utf-8"))

    def made(*parameters, direction="minimize"):
        found = page.evaluate(DRAW, json.loads(json.dumps(numbers(parameters, direction))))
        assert complaints == []
        return found

    yield made
    page.close()


def at(parameter, share):
    """The value at this share of a parameter's range, as it is drawn."""
    if parameter["kind"] == "choice":
        return parameter["values"][round(share)]
    low, high = parameter["low"], parameter["high"]
    value = math.exp(math.log(low) + share * math.log(high / low)) if parameter["log"] else low + share * (high - low)
    return round(value) if parameter["kind"] == "int" else value


def numbers(parameters, direction):
    """A study with every state of a trial, what a model could say of it, and a forecast."""
    point = {k: {each["name"]: at(each, k / 10) for each in parameters} for k in range(11)}
    states = ["complete", "complete", "failed", "running", "withdrawn", "complete", "complete"]
    rows = {
        str(k): {
            "trial": k,
            "state": state,
            "value": 1.0 + k if state == "complete" else None,
            "params": point[k],
            "deciding": False,
        }
        for k, state in enumerate(states)
    }
    slices = []
    for each in parameters:
        places = [0, 1] if each["kind"] == "choice" else [at(each, k / 7) for k in range(8)]
        middle = [float(k) for k in range(len(places))]
        band = {"low": [value - 1 for value in middle], "middle": middle, "high": [value + 1 for value in middle]}
        slices.append({"name": each["name"], "at": places, "recommended": places[1], **band})
    plan = [{"params": point[k], "middle": 2.0 + k, "low": 1.0 + k, "high": 3.0 + k} for k in (8, 9, 10)]
    model = {"plan": plan, "slices": slices, "recommended": {"params": point[4]}, "map": None}
    if len(parameters) == 2 and CHOICE not in parameters:
        model["map"] = {"width": WIDTH, "height": HEIGHT, "median": [float(i) for _ in range(HEIGHT) for i in range(WIDTH)]}
    steps = [{"k": k, "expected": 7.0 - k / 10, "low": 6.5 - k / 10, "high": 7.0} for k in range(1, 6)]
    state = {"head": {"parameters": parameters, "direction": direction, "unit": "mg"}, "rows": rows}
    return [state, model, {"best": 7.0, "within": 3, "steps": steps}]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_every_chart_is_drawn_and_answers_the_pointer(draw, direction):
    found = draw(NUMBER, LOG, WHOLE, CHOICE, direction=direction)
    assert found["captions"][1:5] == ["temperature (°C)", "rate", "stages", "catalyst"]
    assert found["captions"][0].startswith("Values so far")
    assert found["captions"][5].startswith("The best value expected")
    assert all(found["tips"]), found["tips"]
    found = draw(NUMBER, LOG, direction=direction)
    assert found["captions"][1].startswith("Map of the model")
    assert all(found["tips"]), found["tips"]
    assert found["svgs"] == 6  # five charts, and the colours of the map


def test_the_map_has_its_contours_where_the_model_has_them(draw):
    """The model's places are evenly spaced as they are drawn: the same medians make the same contours on every axis."""
    even = draw(NUMBER, {**NUMBER, "name": "other"})["levels"]
    assert len(even) > 5
    assert draw({**LOG, "name": "first"}, LOG)["levels"] == even
    assert draw(WHOLE, LOG)["levels"] == even
