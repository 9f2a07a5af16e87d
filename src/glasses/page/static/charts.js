// Charts of a study, out of the numbers of the page: used by the page itself and by the report. Names and values are only ever
// texts of an SVG. Colours are those of Okabe and Ito.
const GlassesCharts = (() => {
  "use strict";
  const BLUE = "#0072b2", VERMILLION = "#d55e00", GREEN = "#009e73", GREY = "#8a949e", BROWN = "#7a4a00", INK = "#1d2733";

  function shown(value) {
    if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
    return String(parseFloat(value.toPrecision(6)));
  }

  function withUnit(text, unit) { return unit ? `${text} ${unit}` : text; }
  function labelled(name, unit) { return unit ? `${name} (${unit})` : name; }

  function point(parameters, params) {
    return parameters.filter((p) => p.name in params).map((p) => `${p.name} = ${withUnit(shown(params[p.name]), p.unit)}`).join("\n");
  }

  function position(parameter, value) { // of a choice: its place among the choices
    if (parameter.kind !== "choice") return value;
    return parameter.values.findIndex((each) => each === value);
  }

  function rowsOf(state) { return Object.values(state.rows).sort((a, b) => a.trial - b.trial); }
  function complete(state) { return rowsOf(state).filter((row) => row.state === "complete" && row.value !== null); }
  function underWay(state) { return rowsOf(state).filter((row) => row.state === "running" && !row.deciding); }
  function powers(value) { // of the ticks of a logarithmic axis, those that are powers of ten
    const power = Math.log10(value);
    return Math.abs(power - Math.round(power)) < 1e-9 ? (Math.abs(power) < 5 ? String(Number(value.toPrecision(2))) : value.toExponential(0)) : "";
  }
  function logTicks(parameter) { return parameter.log ? { tickFormat: parameter.high / parameter.low >= 20 ? powers : "~g" } : {}; }
  function failed(state) { return rowsOf(state).filter((row) => row.state === "failed"); }

  function titleOf(state, row) {
    const words = row.state === "running" ? "under way" : row.state === "complete" ? `value ${withUnit(shown(row.value), state.head.unit)}` : row.state;
    return `trial ${row.trial}: ${words}\n${point(state.head.parameters, row.params)}`;
  }

  function planTitle(state, each, i) {
    const words = i === 0 ? "next" : `${i + 1}. of the plan`;
    return `${words}: ${shown(each.middle)}, 95 % from ${shown(each.low)} to ${shown(each.high)}\n${point(state.head.parameters, each.params)}`;
  }

  // A chart in a figure with its caption. A click on a point that has a trial calls `open`.
  function draw(figure, caption, describe, options, open) {
    const width = Math.max(260, Math.min(1100, figure.clientWidth || 640));
    const chart = Plot.plot({
      width, marginLeft: 56, marginBottom: 36, marginRight: 20, style: { fontSize: "12px", background: "none", color: INK },
      ariaLabel: caption, ariaDescription: describe, ...options, height: options.height ?? Math.round(Math.min(280, width * 0.66)),
    });
    chart.setAttribute("role", "img");
    if (open) {
      chart.classList.add("clicks");
      chart.addEventListener("click", () => { if (chart.value && Number.isInteger(chart.value.trial)) open(chart.value.trial); });
    }
    const title = document.createElement("figcaption");
    title.textContent = caption;
    figure.replaceChildren(title, chart);
  }

  function tip(data, x, y, title) {
    return Plot.tip(data, Plot.pointer({ x, y, title, maxRadius: 30, fontSize: 12, fill: "white", textPadding: 8 }));
  }

  function convergence(figure, state, model, open) {
    const done = complete(state), maximize = state.head.direction === "maximize";
    let best = null;
    const dots = done.map((row, i) => {
      best = best === null ? row.value : maximize ? Math.max(best, row.value) : Math.min(best, row.value);
      return { trial: row.trial, k: i + 1, value: row.value, best, title: titleOf(state, row) };
    });
    const plan = (model.plan ?? []).filter((each) => each.middle !== null).slice(0, 60)
      .map((each, i) => ({ ...each, k: dots.length + i + 1, value: each.middle, title: planTitle(state, each, i) }));
    draw(figure, "Values so far, and the plan", `${dots.length} evaluations and ${plan.length} planned ones`, {
      x: { label: "evaluation", labelArrow: "none", tickFormat: "d", ticks: Math.min(10, Math.max(2, dots.length + plan.length)), interval: dots.length + plan.length < 12 ? 1 : undefined, nice: false },
      y: { label: labelled("value", state.head.unit), grid: true, nice: true, labelArrow: "none" }, height: 250,
      marks: [
        Plot.ruleX(plan, { x: "k", y1: "low", y2: "high", stroke: VERMILLION, strokeOpacity: 0.5 }),
        Plot.dot(dots, { x: "k", y: "value", fill: GREY, r: dots.length > 300 ? 2 : 3.5 }),
        Plot.line(dots, { x: "k", y: "best", curve: "step-after", stroke: BLUE, strokeWidth: 2 }),
        Plot.dot(plan.slice(1), { x: "k", y: "value", stroke: VERMILLION, fill: "white", r: 3.5, strokeWidth: 1.7 }),
        Plot.dot(plan.slice(0, 1), { x: "k", y: "value", fill: VERMILLION, stroke: "white", symbol: "star", r: 8 }),
        tip([...dots, ...plan], "k", "value", "title"),
      ],
    }, open);
  }

  function slice(figure, state, model, each, open) {
    const parameter = state.head.parameters.find((p) => p.name === each.name);
    if (!parameter) return;
    const choice = parameter.kind === "choice";
    const curve = each.at.map((at, i) => ({ at, low: each.low[i], middle: each.middle[i], high: each.high[i] }));
    const dots = complete(state).filter((row) => parameter.name in row.params)
      .map((row) => ({ trial: row.trial, at: position(parameter, row.params[parameter.name]), value: row.value, title: titleOf(state, row) }))
      .filter((row) => !choice || row.at >= 0);
    const plan = (model.plan ?? []).filter((p) => p.middle !== null).slice(0, 60)
      .map((p, i) => ({ at: position(parameter, p.params[parameter.name]), value: p.middle, title: planTitle(state, p, i) }));
    const numbers = [...curve.flatMap((c) => [c.low, c.high]), ...dots.map((d) => d.value)].filter((v) => v !== null);
    const [bottom, top] = d3.extent(numbers);
    const missed = failed(state).filter((row) => parameter.name in row.params)
      .map((row) => ({ trial: row.trial, at: position(parameter, row.params[parameter.name]), value: top, title: titleOf(state, row) }));
    const busy = underWay(state).filter((row) => parameter.name in row.params)
      .map((row) => ({ trial: row.trial, at: position(parameter, row.params[parameter.name]), value: bottom, title: titleOf(state, row) }));
    const along = curve.map((c) => ({ at: c.at, value: c.middle,
      title: `${parameter.name} = ${choice ? parameter.choices[c.at] : withUnit(shown(c.at), parameter.unit)}\nmodel ${shown(c.middle)}, 95 % from ${shown(c.low)} to ${shown(c.high)}` }));
    const x = choice
      ? { type: "linear", domain: [-0.5, parameter.choices.length - 0.5], ticks: d3.range(parameter.choices.length), tickFormat: (i) => short(parameter.choices[i] ?? ""), label: null }
      : { type: parameter.log ? "log" : "linear", domain: [parameter.low, parameter.high], label: null, ticks: 5, ...logTicks(parameter) };
    draw(figure, labelled(parameter.name, parameter.unit), "the model along this parameter through the recommended point", {
      x, marginBottom: 26, y: { label: labelled("value", state.head.unit), grid: true, nice: true, domain: [bottom, top], labelArrow: "none" }, clip: false,
      marks: [
        choice || curve.length < 2 || each.at.length < 12 && parameter.kind === "int"
          ? Plot.ruleX(curve, { x: "at", y1: "low", y2: "high", stroke: BLUE, strokeOpacity: 0.35, strokeWidth: 7 })
          : Plot.areaY(curve, { x: "at", y1: "low", y2: "high", fill: BLUE, fillOpacity: 0.18 }),
        choice ? Plot.dot(curve, { x: "at", y: "middle", fill: BLUE, symbol: "square", r: 4 }) : Plot.line(curve, { x: "at", y: "middle", stroke: BLUE, strokeWidth: 2 }),
        Plot.ruleX([each.recommended], { stroke: GREEN, strokeDasharray: "5 3", strokeWidth: 1.5 }),
        Plot.dot(dots, { x: "at", y: "value", fill: GREY, stroke: "white", strokeWidth: 0.5, r: dots.length > 300 ? 2 : 3.5 }),
        Plot.dot(missed, { x: "at", y: "value", stroke: INK, symbol: "times", r: 4 }),
        Plot.dot(plan.slice(1), { x: "at", y: "value", stroke: VERMILLION, fill: "white", r: 3.5, strokeWidth: 1.7, clip: true }),
        Plot.dot(plan.slice(0, 1), { x: "at", y: "value", fill: VERMILLION, stroke: "white", symbol: "star", r: 8 }),
        Plot.dot(busy, { x: "at", y: "value", fill: BROWN, stroke: "white", symbol: "triangle", r: 6 }),
        tip([...along, ...dots, ...missed, ...busy, ...plan], "at", "value", "title"),
      ],
    }, open);
  }

  function map(figure, state, model, open) {
    const [a, b] = state.head.parameters, found = model.map;
    const scale = (p) => ({ type: p.log ? "log" : "linear", domain: [p.low, p.high], label: labelled(p.name, p.unit), labelArrow: "none", ticks: 6, ...logTicks(p) });
    const at = (row) => ({ trial: row.trial, a: row.params[a.name], b: row.params[b.name], title: titleOf(state, row) });
    const dots = complete(state).map(at), missed = failed(state).map(at), busy = underWay(state).map(at);
    const plan = (model.plan ?? []).slice(0, 60).map((p, i) => ({ a: p.params[a.name], b: p.params[b.name], title: p.middle === null ? "plan" : planTitle(state, p, i) }));
    const best = { a: model.recommended.params[a.name], b: model.recommended.params[b.name], title: `recommended\n${point(state.head.parameters, model.recommended.params)}` };
    const width = Math.max(260, Math.min(1100, figure.clientWidth || 640));
    draw(figure, `Map of the model: ${a.name} and ${b.name} (◇ recommended)`, "the median that the model predicts over both parameters", {
      x: scale(a), y: scale(b), height: Math.round(Math.min(460, width * 0.8)), marginTop: 24,
      color: { scheme: "YlGnBu", reverse: state.head.direction === "minimize", legend: true, label: labelled("median of the model", state.head.unit), width: Math.min(280, width - 20) },
      marks: [
        // The model's places are evenly spaced as they are drawn, on logarithmic axes too: the grid is taken as it is.
        Plot.contour(found.median, { width: found.width, height: found.height, x1: a.low, x2: a.high, y1: b.low, y2: b.high, fill: Plot.identity, interpolate: (index, width, height, x, y, values) => values, thresholds: 14, stroke: "#ffffff", strokeOpacity: 0.35, strokeWidth: 0.6 }),
        Plot.dot(dots, { x: "a", y: "b", fill: "white", stroke: INK, r: 4 }),
        Plot.dot(missed, { x: "a", y: "b", stroke: INK, symbol: "times", r: 5, strokeWidth: 2 }),
        Plot.dot(plan.slice(1), { x: "a", y: "b", stroke: VERMILLION, fill: "white", r: 4.5, strokeWidth: 2 }),
        Plot.dot([best], { x: "a", y: "b", stroke: GREEN, fill: "white", symbol: "diamond2", r: 7, strokeWidth: 2.5 }),
        Plot.dot(busy, { x: "a", y: "b", fill: BROWN, stroke: "white", symbol: "triangle", r: 6 }),
        Plot.dot(plan.slice(0, 1), { x: "a", y: "b", fill: VERMILLION, stroke: "white", symbol: "star", r: 11 }),
        Plot.text(plan.slice(1, 10), { x: "a", y: "b", text: (d, i) => String(i + 2), dy: -12, fontSize: 11, fontWeight: 600, fill: INK, stroke: "white", strokeWidth: 3 }),
        tip([...dots, ...missed, ...busy, ...plan, best], "a", "b", "title"),
      ],
    }, open);
  }

  function forecast(figure, state, found) {
    if (!found || !found.steps || !found.steps.length) { figure.replaceChildren(); return; }
    const now = { k: 0, expected: found.best, low: found.best, high: found.best };
    const steps = [now, ...found.steps].map((s) => ({ ...s, title: s.k === 0 ? `now: ${shown(s.expected)}` : `after ${s.k} more: ${shown(s.expected)} expected\n80 % from ${shown(s.low)} to ${shown(s.high)}` }));
    const end = found.within > 0 && found.within < found.steps.length ? [found.within] : [];
    draw(figure, "The best value expected after further evaluations, with its 80 % band", "", {
      x: { label: "more evaluations", tickFormat: "d", interval: found.steps.length < 12 ? 1 : undefined, labelArrow: "none" },
      y: { label: labelled("best value", state.head.unit), grid: true, nice: true, labelArrow: "none" }, height: 260,
      marks: [
        Plot.areaY(steps, { x: "k", y1: "low", y2: "high", fill: BLUE, fillOpacity: 0.16 }),
        Plot.ruleY([found.best], { stroke: INK, strokeDasharray: "2 3" }),
        Plot.line(steps, { x: "k", y: "expected", stroke: BLUE, strokeWidth: 2, marker: steps.length < 40 ? "circle" : undefined }),
        Plot.ruleX(end, { stroke: VERMILLION, strokeDasharray: "5 3" }),
        Plot.text(end, { x: (k) => k, frameAnchor: "top", text: () => "the budget ends", fill: "#b84f00", dx: 6, textAnchor: "start" }),
        tip(steps, "k", "expected", "title"),
      ],
    });
  }

  // All charts of the model, each in a figure of its own inside `container`.
  function all(container, state, model, open) {
    if (!complete(state).length) { container.replaceChildren(); return; }
    const figures = [["convergence", (f) => convergence(f, state, model, open)]];
    if (model.map) figures.push(["map", (f) => map(f, state, model, open)]);
    for (const each of model.slices ?? []) figures.push([`slice ${each.name}`, (f) => slice(f, state, model, each, open)]);
    const present = new Map([...container.children].map((f) => [f.dataset.chart, f]));
    container.replaceChildren(...figures.map(([name]) => {
      const figure = present.get(name) ?? document.createElement("figure");
      figure.dataset.chart = name;
      figure.className = name === "convergence" || name === "map" ? "wide" : "";
      return figure;
    }));
    figures.forEach(([, make], i) => make(container.children[i]));
  }

  function short(text) { return text.length > 14 ? `${text.slice(0, 13)}…` : text; }

  return { all, forecast, shown, withUnit, labelled };
})();
