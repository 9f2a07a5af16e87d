// The page: its state from the server, live, and the sections that show it.
import { openHistory, startDialogs } from "./dialogs.js";
import { showExperiments, startAsking } from "./experiments.js";
import { startImport } from "./importing.js";
import { get } from "./server.js";
import { showTrials, startTrials } from "./trials.js";

const by = (id) => document.getElementById(id);
const { shown, withUnit } = GlassesCharts;
const data = JSON.parse(by("data").textContent);
const page = { state: data.state, model: data.model, asking: false, openHistory: (n) => openHistory(page, n) };
let whatIf = null; // the forecast for another budget

function showSummary() {
  const { head } = page.state;
  const counts = Object.entries(head.counts).filter(([state]) => state !== "waiting").map(([state, n]) => `${n} ${state}`);
  by("summary").textContent = `${counts.join(", ") || "nothing evaluated yet"} · ${head.left_words} · ${head.direction}`;
  const best = head.best === null ? null : page.state.rows[head.best];
  by("best-value").textContent = best ? withUnit(shown(best.value), head.unit) : "none yet";
  by("best-where").textContent = best ? `trial ${best.trial}: ${head.parameters.map((p) => `${p.name} = ${withUnit(shown(best.params[p.name]), p.unit)}`).join(", ")}` : "";
  document.title = `${best ? `${shown(best.value)} · ` : ""}${head.name} · glasses`;
}

const SAID = {
  waiting: "The model waits.", thinking: "The model is thinking …", nothing: "The model begins with the first result.", ready: "",
};

function showModel() {
  const { model, state } = page;
  by("model-state").textContent = model.state === "failed" ? model.words : SAID[model.state] ?? "";
  by("model-state").hidden = model.state === "ready";
  by("model-state").classList.toggle("thinking", model.state === "thinking");
  by("charts").classList.toggle("old", model.state === "thinking" && !model.plan);
  GlassesCharts.all(by("charts"), state, model, page.openHistory);
  showWorth();
}

function showWorth() {
  const { head } = page.state, found = whatIf ?? page.model.forecast, unit = head.unit;
  const last = found?.steps?.at(-1);
  by("expected-value").textContent = last ? withUnit(shown(Number(last.expected.toPrecision(4))), unit) : "–";
  by("expected-band").textContent = last ? `80 %: ${shown(Number(last.low.toPrecision(4)))} to ${shown(Number(last.high.toPrecision(4)))}` : "";
  by("worth-words").textContent = found?.words ?? (page.model.state === "thinking" ? "The forecast follows the model." : "A forecast follows the first results.");
  const advice = page.model.forecast?.advice;
  by("advice").hidden = !advice;
  by("advice").textContent = [advice, page.model.forecast?.note].filter(Boolean).join(" ");
  if (document.activeElement !== by("budget") && !whatIf) by("budget").value = head.budget;
  by("budget").disabled = head.priced;
  by("budget-note").textContent = head.priced ? `experiments have costs: edit ${head.budget_line}` : whatIf ? whatIf.edit : "change it to see the effect";
  GlassesCharts.forecast(by("forecast"), page.state, found);
}

let typing = 0;
function startBudget() {
  by("budget").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(async () => {
      const wanted = by("budget").value;
      if (!wanted || Number(wanted) === page.state.head.budget) { whatIf = null; showWorth(); return; }
      by("budget-note").textContent = "The model is thinking …";
      try {
        const found = await get(`/api/forecast?budget=${encodeURIComponent(wanted)}`);
        if (by("budget").value === wanted) { whatIf = found; showWorth(); }
      } catch (error) { by("budget-note").textContent = error.message; }
    }, 350);
  });
}

let drawing = 0;
function later(draw) { cancelAnimationFrame(drawing); drawing = requestAnimationFrame(draw); }

function took(event) {
  const changed = event.whole ? null : Object.keys(event.rows);
  page.state = { version: event.version, head: event.head, rows: event.whole ? event.rows : { ...page.state.rows, ...event.rows } };
  whatIf = null;
  showSummary();
  showExperiments(page);
  showTrials(page, changed);
  later(showModel);
}

function connection(live, words) {
  by("connection").textContent = words;
  by("connection").className = live ? "pill live" : "pill waiting";
}

function connect() {
  const has = page.model.state === "ready" ? page.model.key : "";
  const source = new EventSource(`/api/events?version=${page.state.version}&model=${has}`);
  source.addEventListener("open", () => connection(true, "live"));
  source.addEventListener("state", (event) => took(JSON.parse(event.data)));
  source.addEventListener("model", (event) => { page.model = JSON.parse(event.data); later(showModel); });
  source.addEventListener("trouble", (event) => {
    const { words } = JSON.parse(event.data);
    by("trouble").hidden = !words;
    by("trouble").textContent = words ?? "";
  });
  source.addEventListener("error", () => {
    source.close();
    connection(false, "waiting for the server");
    setTimeout(connect, 600);
  });
}

startDialogs();
startAsking(page);
startTrials(page);
startImport();
startBudget();
showSummary();
showExperiments(page);
showTrials(page, null);
requestAnimationFrame(() => requestAnimationFrame(showModel)); // first paint, then the charts
connect();

let width = window.innerWidth;
window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; later(showModel); } });
