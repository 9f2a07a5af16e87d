// The table of all trials: sortable, one row per trial that is changed in place, so that a thousand stay usable.
import { askWhy, openCorrection, withdraw } from "./dialogs.js";
import { post } from "./server.js";

const { shown, labelled } = GlassesCharts;
const table = document.getElementById("trials");
const body = table.tBodies[0];
const lines = new Map();
let sorted = { key: "trial", descending: true };
let columns = [];

const moments = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
function when(text) { return text ? moments.format(new Date(text)) : ""; } // the machine's own time, as it was stored

function columnsOf(head) {
  return [
    { key: "trial", title: "trial", of: (row) => row.trial, number: true },
    { key: "state", title: "state", of: (row) => row.state },
    { key: "value", title: labelled("value", head.unit), of: (row) => row.value, number: true },
    ...head.parameters.map((p) => ({ key: `param ${p.name}`, title: labelled(p.name, p.unit), of: (row) => row.params[p.name] ?? null, number: p.kind !== "choice" })),
    { key: "finished", title: "finished", of: (row) => row.finished, text: (row) => when(row.finished) },
    { key: "reason", title: "reason", of: (row) => row.reason },
  ];
}

function showHead(page) {
  const row = document.createElement("tr");
  for (const column of columns) {
    const cell = document.createElement("th"), button = document.createElement("button");
    cell.scope = "col";
    button.type = "button";
    button.textContent = column.title;
    if (sorted.key === column.key) cell.setAttribute("aria-sort", sorted.descending ? "descending" : "ascending");
    button.addEventListener("click", () => {
      sorted = { key: column.key, descending: sorted.key === column.key ? !sorted.descending : false };
      showHead(page);
      sort(page);
      table.tHead.querySelector("[aria-sort] button")?.focus();
    });
    cell.append(button);
    row.append(cell);
  }
  const last = document.createElement("th"), words = document.createElement("span");
  last.scope = "col";
  words.textContent = "change";
  last.append(words);
  row.append(last);
  table.tHead.replaceChildren(row);
}

function actionsOf(row) {
  if (["complete", "failed"].includes(row.state)) return ["history", "correct", "withdraw", ...(row.state === "failed" ? ["retry"] : [])];
  if (row.state === "running" && row.by_hand && !row.deciding) return ["history", "correct", "cancel"];
  return row.state === "waiting" ? ["cancel"] : ["history"];
}

const NAMES = { history: "History", correct: "Correct", withdraw: "Withdraw", retry: "Try again", cancel: "Cancel" };

function lineOf(row, best) {
  const line = document.createElement("tr");
  for (const column of columns) {
    const cell = line.insertCell(), value = column.of(row);
    cell.textContent = column.text ? column.text(row) : shown(value);
    cell.className = column.key.startsWith("param ") ? "" : column.key;
    if (column.key === "finished" && value) cell.title = value.replace("T", " ");
    if (column.number) cell.classList.add("number");
  }
  const cell = line.insertCell();
  cell.className = "actions";
  for (const action of actionsOf(row)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = NAMES[action];
    button.dataset.action = action;
    button.setAttribute("aria-label", `${NAMES[action]}, trial ${row.trial}`);
    cell.append(button, " ");
  }
  line.dataset.trial = row.trial;
  line.classList.add(...row.state.split(/\W+/));
  line.classList.toggle("best", row.trial === best);
  return line;
}

function compare(a, b) {
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1; // nothing comes last
  if (b === null || b === undefined) return -1;
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  return sorted.descending ? -order : order;
}

function sort(page) {
  const column = columns.find((each) => each.key === sorted.key) ?? columns[0];
  const rows = Object.values(page.state.rows).sort((a, b) => compare(column.of(a), column.of(b)) || b.trial - a.trial);
  const wanted = rows.map((row) => lines.get(row.trial));
  if (wanted.some((line, i) => body.rows[i] !== line)) {
    const focused = document.activeElement;
    body.replaceChildren(...wanted);
    if (body.contains(focused)) focused.focus({ preventScroll: true });
  }
}

// `changed`: the numbers of the rows that are not as they were; null for all.
export function showTrials(page, changed) {
  const { head, rows } = page.state;
  const wanted = columnsOf(head);
  if (changed === null || wanted.map((c) => c.title).join() !== columns.map((c) => c.title).join()) {
    columns = wanted;
    lines.clear();
    body.replaceChildren();
    showHead(page);
    changed = Object.keys(rows);
  }
  for (const n of changed) {
    const line = lineOf(rows[n], head.best);
    const before = lines.get(Number(n));
    lines.set(Number(n), line);
    if (before?.isConnected) {
      const held = before.contains(document.activeElement) ? document.activeElement.dataset.action : null;
      before.replaceWith(line);
      if (held) line.querySelector(`[data-action="${held}"]`)?.focus({ preventScroll: true });
    }
  }
  for (const [n, line] of lines) line.classList.toggle("best", n === head.best);
  sort(page);
  document.getElementById("none-yet").hidden = lines.size > 0;
  table.closest(".scroll").hidden = lines.size === 0;
}

export function startTrials(page) {
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-action]");
    if (!button) return;
    const n = Number(button.closest("tr").dataset.trial);
    if (button.dataset.action === "history") page.openHistory(n);
    if (button.dataset.action === "correct") openCorrection(page, n);
    if (button.dataset.action === "withdraw") withdraw(page, n);
    if (button.dataset.action === "retry") post("retry", { trial: n });
    if (button.dataset.action === "cancel") askWhy(`Cancel trial ${n}?`, "It costs nothing, and says nothing about this point.", "Cancel it", (reason) => post("cancel", { trial: n, reason }));
  });
}
