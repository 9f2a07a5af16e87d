// Questions before something is changed, and the history of a trial.
import { get, post, say } from "./server.js";
import { edited, fields, values } from "./experiments.js";

const { shown, labelled } = GlassesCharts;
const by = (id) => document.getElementById(id);

export function startDialogs() {
  for (const each of document.querySelectorAll("[data-close]")) each.addEventListener("click", () => each.closest("dialog").close());
}

// A sentence, an optional reason, and a button that does it.
export function askWhy(title, words, yes, action) {
  const dialog = by("why");
  by("why-title").textContent = title;
  by("why-words").textContent = words;
  by("why-yes").textContent = yes;
  by("why-reason").value = "";
  dialog.querySelector("form").onsubmit = () => { action(by("why-reason").value); };
  dialog.showModal();
  by("why-yes").focus();
}

export function withdraw(page, n) {
  askWhy(`Withdraw the result of trial ${n}?`, "It no longer counts: no effect on the search, no cost. The history keeps it, and it can be undone.", "Withdraw it",
    (reason) => post("withdraw", { trial: n, reason }));
}

export function openCorrection(page, n) {
  const row = page.state.rows[n], head = page.state.head, dialog = by("correct");
  by("correct-title").textContent = `Correct trial ${n}`;
  by("correct-result").hidden = row.state === "running";
  by("correct-value-label").querySelector("span").textContent = labelled("Measured value", head.unit);
  const value = by("correct-value"), failed = by("correct-failed");
  value.value = row.value === null ? "" : String(row.value);
  failed.checked = row.state === "failed";
  failed.onchange = () => { value.disabled = failed.checked; };
  failed.onchange();
  by("correct-params").replaceChildren(...fields(head.parameters, row.params, "correct-point"));
  by("correct-reason").value = "";
  by("correct-error").textContent = "";
  dialog.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    const body = { trial: n, params: edited(by("correct-params")), reason: by("correct-reason").value };
    if (failed.checked) body.failed = true;
    else if (!by("correct-result").hidden) body.value = value.value;
    const found = await post("correct", body, { onError: (wrong) => { by("correct-error").textContent = wrong.error; } });
    if (found) dialog.close();
  };
  dialog.showModal();
  (by("correct-result").hidden ? by("correct-params").querySelector("[data-name]") : value)?.focus();
}

const WORDS = { told: "Told", imported: "Imported", lost: "Lost with its worker", retry: "Queued again", correct: "Corrected", withdraw: "Withdrawn", cancel: "Cancelled", undo: "Taken back" };

function seen(head, state) {
  if (!state) return "";
  return state.value === null ? state.state : GlassesCharts.withUnit(shown(state.value), head.unit);
}

function sentence(head, entry) {
  const parts = [WORDS[entry.what] ?? entry.what];
  const before = seen(head, entry.before), after = seen(head, entry.after);
  if (entry.before && before !== after) parts.push(`${before} → ${after}`);
  else if (!entry.before && after) parts.push(after);
  if (entry.before && entry.after) {
    for (const p of head.parameters) {
      const [was, is] = [entry.before.params[p.name], entry.after.params[p.name]];
      if (was !== undefined && was !== is) parts.push(`${p.name} ${shown(was)} → ${shown(is)}`);
    }
  }
  let text = parts.length > 1 ? `${parts[0]}: ${parts.slice(1).join(", ")}` : parts[0];
  if (entry.who) text += `, by ${entry.who}`;
  if (entry.when) text += `, ${new Date(entry.when).toLocaleString()}`;
  return entry.reason ? `${text} (${entry.reason})` : text;
}

export async function openHistory(page, n) {
  let found;
  try {
    found = await get(`/api/history?trial=${n}`);
  } catch (error) {
    say(error.message, { bad: true });
    return;
  }
  const { head, rows } = page.state;
  by("history-title").textContent = `Trial ${n}: ${rows[n].value === null ? rows[n].state : GlassesCharts.withUnit(shown(rows[n].value), head.unit)}`;
  values(by("history-point"), head.parameters, rows[n].params);
  const entries = found.entries.map((entry) => {
    const item = document.createElement("li");
    item.textContent = sentence(head, entry);
    if (!entry.stands) item.className = "undone";
    return item;
  });
  if (!entries.length) {
    const item = document.createElement("li");
    item.textContent = "Nothing has been told yet.";
    entries.push(item);
  }
  by("history-entries").replaceChildren(...entries);
  by("history").showModal();
}
