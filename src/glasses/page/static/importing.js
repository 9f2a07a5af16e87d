// A table of results: dropped or chosen, shown first, then stored.
import { post, say } from "./server.js";

const by = (id) => document.getElementById(id);
const LARGEST = 3_500_000; // bytes

async function textOf(file) {
  if (file.size > LARGEST) throw new Error(`${file.name} is larger than ${LARGEST / 1e6} MB: split it, or use glasses import.`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not text in UTF-8: save it as CSV in UTF-8.`);
  }
}

function count(n, one, many) { return n ? [`${n} ${n === 1 ? one : many}`] : []; }

function show(found) {
  const notes = [
    ...count(found.duplicates, "is there already", "are there already"), ...count(found.blank, "has no value", "have no value"),
    ...count(found.known, "was told before", "were told before"),
    ...Object.entries(found.skipped).map(([state, n]) => `${n} ${state}`),
  ];
  by("import-words").textContent = `${found.count} ${found.count === 1 ? "result" : "results"} will be stored.${notes.length ? ` Left out: ${notes.join(", ")}.` : ""}${found.more ? ` ${found.more} further rows are not shown.` : ""}${found.notes.map((note) => ` ${note}`).join("")}`;
  const [head, rows] = [by("import-rows").tHead, by("import-rows").tBodies[0]];
  const line = (cells, tag) => {
    const made = document.createElement("tr");
    for (const text of cells) {
      const cell = document.createElement(tag);
      cell.textContent = text ?? "";
      if (tag === "th") { cell.scope = "col"; const span = document.createElement("span"); span.textContent = cell.textContent; cell.replaceChildren(span); }
      made.append(cell);
    }
    return made;
  };
  head.replaceChildren(line(found.header, "th"));
  rows.replaceChildren(...found.rows.map((cells) => line(cells, "td")));
  by("import-store").disabled = found.count === 0;
  by("import-store").textContent = found.count ? `Store ${found.count}` : "Nothing to store";
}

export function startImport() {
  const drop = by("drop"), dialog = by("import");
  let text = "";
  const options = () => ({ text, again: by("import-again").checked, outside_budget: by("import-outside").checked });
  const refuse = (wrong) => {
    if (dialog.open) by("import-error").textContent = wrong.error;
    else say(wrong.error, { bad: true });
  };
  const preview = async () => {
    by("import-error").textContent = "";
    const found = await post("import/preview", options(), { quiet: true, onError: refuse });
    if (!found) { by("import-store").disabled = true; return; }
    show(found);
    if (!dialog.open) dialog.showModal();
  };
  const take = async (file) => {
    if (!file) return;
    try { text = await textOf(file); } catch (error) { say(error.message, { bad: true }); return; }
    by("import-again").checked = false;
    by("import-outside").checked = true;
    await preview();
  };
  by("csv").addEventListener("change", async (event) => { await take(event.target.files[0]); event.target.value = ""; });
  for (const name of ["dragover", "dragenter"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); take(event.dataTransfer.files[0]); });
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault()); // a file beside it opens nothing
  for (const id of ["import-again", "import-outside"]) by(id).addEventListener("change", preview);
  dialog.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    by("import-store").disabled = true;
    const found = await post("import/store", options(), { onError: refuse });
    by("import-store").disabled = false;
    if (found) dialog.close();
  };
}
