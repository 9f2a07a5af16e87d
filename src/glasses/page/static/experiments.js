// What to do next: one card for each experiment that a person has open, and the button that gets another.
import { post, say } from "./server.js";
import { askWhy, openCorrection } from "./dialogs.js";

const { shown, labelled } = GlassesCharts;
const cards = new Map();

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function values(list, parameters, params) {
  list.replaceChildren(...parameters.filter((p) => p.name in params).map((p) => {
    const value = element("dd", { textContent: shown(params[p.name]) });
    if (typeof params[p.name] === "number") value.title = String(params[p.name]);
    if (p.unit) value.append(element("span", { className: "unit", textContent: p.unit }));
    return element("div", {}, element("dt", { textContent: p.name }), value);
  }));
}

// Fields for a point, filled with its values.
export function fields(parameters, params, prefix) {
  return parameters.filter((p) => p.name in params).map((p, i) => {
    const id = `${prefix}-${i}`;
    let field;
    if (p.kind === "choice") {
      field = element("select", { id }, ...p.choices.map((text) => element("option", { value: text, textContent: text })));
      const at = p.values.findIndex((each) => each === params[p.name]);
      if (at >= 0) field.selectedIndex = at;
    } else {
      field = element("input", { id, value: shown(params[p.name]), inputMode: "decimal", autocomplete: "off" });
    }
    field.dataset.name = p.name;
    field.dataset.before = field.value;
    return element("div", {}, element("label", { htmlFor: id, textContent: labelled(p.name, p.unit) }), field);
  });
}

// The texts of the fields that were edited.
export function edited(container) {
  return Object.fromEntries([...container.querySelectorAll("[data-name]")].filter((f) => f.value !== f.dataset.before).map((f) => [f.dataset.name, f.value]));
}

function cardOf(page, row) {
  const n = row.trial, head = () => page.state.head;
  const list = element("dl", { className: "values" });
  const value = element("input", { className: "value", id: `value-${n}`, inputMode: "decimal", autocomplete: "off", required: true });
  const label = element("label", { htmlFor: value.id, textContent: labelled("Result", head().unit) });
  const store = element("button", { className: "primary", textContent: "Store the result" });
  const error = element("p", { className: "error", role: "alert" });
  const differently = element("fieldset", { hidden: true }, element("legend", { textContent: "What was really done" }), element("div", { className: "fields" }));
  const button = (text, action) => {
    const made = element("button", { type: "button", textContent: text });
    made.addEventListener("click", action);
    return made;
  };
  const moved = button("I did something slightly different", () => {
    differently.hidden = !differently.hidden;
    moved.setAttribute("aria-expanded", String(!differently.hidden));
    if (!differently.hidden) differently.querySelector("[data-name]")?.focus();
  });
  moved.setAttribute("aria-expanded", "false");
  const point = () => (differently.hidden ? {} : edited(differently));
  const refuse = (found) => {
    error.textContent = found.error;
    if (found.correct !== undefined) say(found.error, { bad: true, buttons: [["Correct it", () => openCorrection(page, found.correct)]] });
    store.disabled = false;
    value.setAttribute("aria-invalid", "true");
    value.focus();
  };
  const tell = async (body) => {
    if (store.disabled) return;
    store.disabled = true;
    error.textContent = "";
    value.removeAttribute("aria-invalid");
    const found = await post("tell", { trial: n, params: point(), ...body }, { onError: refuse });
    store.disabled = false;
    if (found) document.querySelector("#ask button").focus({ preventScroll: true });
  };
  const form = element("form", { noValidate: true },
    element("div", { className: "tell" }, element("div", {}, label, value), store), differently, error,
    element("div", { className: "others" }, moved,
      button("It failed", () => askWhy(`Trial ${n} failed?`, "A failed experiment costs one of the budget, and the search keeps away from its surroundings.", "It failed", (reason) => tell({ failed: true, reason }))),
      button("It could not be done", () => askWhy(`Cancel trial ${n}?`, "It costs nothing, and says nothing about this point.", "Cancel it", (reason) => post("cancel", { trial: n, reason })))));
  form.addEventListener("submit", (event) => { event.preventDefault(); tell({ value: value.value }); });
  const card = element("article", { className: "experiment" },
    element("div", { className: "top" }, element("h3", { textContent: `Trial ${n}` }), button("History", () => page.openHistory(n))), list, form);
  card.setAttribute("aria-label", `Trial ${n}`);
  card.querySelector(".top button").className = "link";
  return { card, list, differently, seen: "" };
}

export function showExperiments(page) {
  const { head, rows } = page.state;
  const open = head.open.map((n) => rows[n]).filter((row) => row.by_hand);
  const others = head.open.map((n) => rows[n]).filter((row) => !row.by_hand);
  const container = document.getElementById("experiments");
  for (const [n, made] of cards) if (!open.some((row) => row.trial === n)) { made.card.remove(); cards.delete(n); }
  for (const row of open) {
    if (!cards.has(row.trial)) {
      cards.set(row.trial, cardOf(page, row));
      container.append(cards.get(row.trial).card);
    }
    const made = cards.get(row.trial), seen = JSON.stringify(row.params);
    if (made.seen !== seen) { // moved by somebody, or new
      made.seen = seen;
      values(made.list, head.parameters, row.params);
      made.differently.querySelector(".fields").replaceChildren(...fields(head.parameters, row.params, `point-${row.trial}`));
    }
  }
  const elsewhere = document.getElementById("elsewhere");
  elsewhere.hidden = others.length === 0;
  elsewhere.textContent = `Under way at workers: ${others.map((row) => `trial ${row.trial}`).join(", ")}.`;
  const ask = document.getElementById("ask"), button = ask.querySelector("button");
  ask.classList.toggle("second", open.length > 0);
  button.disabled = head.remaining === 0 || page.asking;
  button.textContent = page.asking ? "Deciding …" : open.length ? "Get another experiment" : "Get the next experiment";
  const note = document.getElementById("ask-note");
  note.classList.toggle("thinking", page.asking);
  note.textContent = page.asking ? "The next experiment is being decided." : head.remaining === 0
    ? `Nothing is left of the budget of ${head.budget}${head.open.length ? ", but open experiments can be told" : `: raise it in ${head.budget_line} to go on`}.`
    : `${head.left_words}.${head.deciding && !page.asking ? " One more is being decided elsewhere." : ""}`;
  const last = document.getElementById("last-change");
  last.hidden = !head.last_change;
  if (head.last_change) {
    last.querySelector("span").textContent = head.last_change.words;
    last.querySelector("button").onclick = () => post("undo", { key: head.last_change.key });
  }
  focusWanted(page);
}

// The field of an experiment that was asked for here. Its card may come after the answer, with the next news of the study.
function focusWanted(page) {
  const field = document.getElementById(`value-${page.wanted}`);
  if (!field) return;
  page.wanted = null;
  if (!document.activeElement?.matches("input, select, textarea")) field.focus(); // nobody is typing elsewhere
}

export function startAsking(page) {
  document.getElementById("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (page.asking) return;
    page.asking = true;
    showExperiments(page);
    const request = [...crypto.getRandomValues(new Uint32Array(4))].join("-");
    const found = await post("ask", { n: Number(document.getElementById("ask-count").value) || 1, request });
    page.asking = false;
    showExperiments(page);
    page.wanted = found ? found.trials[0] : null;
    focusWanted(page);
  });
}
