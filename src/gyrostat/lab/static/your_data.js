// The place "Your data": a table of one's own, its columns, what holds in every environment, and methods compared.

import { buildCopyButton, byId, element, saveFile } from "./elements.js";
import { drawForest } from "./forest_plot.js";
import { drawComparison } from "./method_comparison.js";
import { Refused, stream } from "./requests.js";

const MOST_BYTES = 7_500_000;
let number = 0, abort = null, source = null, fitted = null, compared = null, clock = null;

export function build(examples) {
  byId("example").replaceChildren(new Option("choose one", ""), ...examples.map((name) => new Option(name, name)));
  byId("example").addEventListener("change", () => { if (byId("example").value) chooseExample(byId("example").value); });
  byId("file").addEventListener("change", () => { if (byId("file").files.length) chooseFile(byId("file").files[0]); });
  buildDrop(byId("panel-data"));
  for (const id of ["target", "environment"]) byId(id).addEventListener("change", () => { showFeatures(); outdated(); });
  for (const id of ["family", "missing", "features"]) byId(id).addEventListener("change", outdated);
  byId("run-fit").addEventListener("click", runFit);
  byId("run-compare").addEventListener("click", runCompare);
  byId("stop").addEventListener("click", stop);
  byId("save-page").addEventListener("click", () => saveFile(fitted.page, "summary.html", "text/html"));
  byId("save-model").addEventListener("click", () => saveFile(fitted.model, "model.json", "application/json"));
  for (const id of ["fit-command", "compare-command"]) buildCopyButton(id);
}

// The first visit shows the first example; the choices of later visits are kept.
export async function open() {
  if (source || abort) return;
  byId("example").selectedIndex = 1;
  if (await chooseExample(byId("example").value)) runFit();
}

export function redraw() {
  if (fitted) drawForest(fitted);
  if (compared) drawComparison(compared);
}

// ---------------------------------------------------------------------------------------- the table

// A file may be dropped anywhere on the place; the box says where.
function buildDrop(place) {
  const box = byId("drop-box"), isFile = (event) => [...event.dataTransfer.types].includes("Files");
  place.addEventListener("dragover", (event) => { if (isFile(event)) { event.preventDefault(); box.classList.add("over"); } });
  place.addEventListener("dragleave", (event) => { if (!place.contains(event.relatedTarget)) box.classList.remove("over"); });
  place.addEventListener("drop", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    box.classList.remove("over");
    chooseFile(event.dataTransfer.files[0]);
  });
}

function chooseExample(name) {
  byId("file").value = "";
  return choose({ example: name }, `Example “${name}”`);
}

async function chooseFile(file) {
  byId("example").value = "";
  if (file.size > MOST_BYTES) return refuse(`${file.name} is larger than 7.5 MB: use gyrostat fit on the command line.`);
  return choose({ name: file.name, text: decoded(await file.arrayBuffer()) }, file.name);
}

// As the commands read text: by its mark, else as UTF-8, else in the encoding of spreadsheets.
function decoded(buffer) {
  const [a, b] = new Uint8Array(buffer, 0, Math.min(2, buffer.byteLength));
  if (a === 0xff && b === 0xfe) return new TextDecoder("utf-16le").decode(buffer);
  if (a === 0xfe && b === 0xff) return new TextDecoder("utf-16be").decode(buffer);
  try { return new TextDecoder("utf-8", { fatal: true }).decode(buffer); } catch { return new TextDecoder("windows-1252").decode(buffer); }
}

async function choose(chosen, name) {
  source = fitted = compared = null;
  byId("choices").hidden = byId("fit-result").hidden = byId("compare-result").hidden = true;
  byId("table-name").textContent = "";
  await ask({ ...chosen, job: "columns" }, "Reading the table", (message) => {
    if (message.kind !== "columns") return;
    source = { ...chosen, columns: message.columns };
    byId("table-name").textContent = `${name}: ${message.rows} rows, ${message.columns.length} columns`;
    for (const id of ["target", "environment"]) {
      byId(id).replaceChildren(...message.columns.map((column) => new Option(column, column)));
      byId(id).value = message[id];
    }
    byId("family").value = "";
    byId("missing").checked = false;
    showFeatures();
    byId("choices").hidden = false;
  });
  return source !== null;
}

// A tick for every column that is neither the outcome nor the environment; those without are left out.
function showFeatures() {
  const taken = [byId("target").value, byId("environment").value], before = new Set(excluded());
  byId("features").replaceChildren(...source.columns.filter((name) => !taken.includes(name)).map((name) => {
    const label = element("label", ""), tick = Object.assign(document.createElement("input"), { type: "checkbox", value: name, checked: !before.has(name) });
    label.append(tick, ` ${name}`);
    return label;
  }));
}

const excluded = () => [...byId("features").querySelectorAll("input:not(:checked)")].map((tick) => tick.value);

// ------------------------------------------------------------------------------------ fit and comparison

function request(job) {
  const { columns, ...table } = source;
  return { ...table, job, target: byId("target").value, environment: byId("environment").value, family: byId("family").value,
    drop: excluded(), missing: byId("missing").checked ? "drop" : "error" };
}

function runFit() {
  return ask(request("fit"), "Looking for effects that hold in every environment", (message) => {
    if (message.kind === "fit") { fitted = message; showFit(); }
  });
}

function runCompare() {
  return ask(request("compare"), "Comparing methods, with every environment left out in turn; this can take minutes", (message) => {
    if (message.kind === "comparison") { compared = message; showComparison(); }
  });
}

// Asks, and says for how long; what was found before is faint until there is an answer.
async function ask(body, doing, receive) {
  stop();
  const mine = abort = new AbortController(), began = performance.now();
  const show = () => { byId("data-status").textContent = `${doing} … ${Math.round((performance.now() - began) / 1000)} s`; };
  byId("data-refused").hidden = true;
  byId("stop").hidden = false;
  show();
  clock = setInterval(show, 1000);
  try {
    await stream("api/table", { number: ++number, ...body }, (message) => { if (abort === mine) receive(message); }, mine.signal);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (abort === mine) refuse(error.message);
  }
  if (abort === mine) stop();
}

function stop() {
  abort?.abort();
  abort = null;
  clearInterval(clock);
  byId("data-status").textContent = "";
  byId("stop").hidden = true;
}

function refuse(text) {
  byId("data-refused").textContent = text;
  byId("data-refused").hidden = false;
}

// What was found with other choices is faint.
function outdated() {
  for (const id of ["fit-result", "compare-result"]) byId(id).classList.add("outdated");
  if (fitted || compared) byId("data-status").textContent = "The choices have changed: run again.";
}

function showFit() {
  const part = byId("fit-result"), { features } = fitted;
  part.hidden = false;
  part.classList.remove("outdated");
  byId("fit-about").textContent = `${fitted.rows} rows in ${fitted.environments.length} environments`;
  showSentences("advice", fitted.sentences);
  const rows = features.map((f) => [f.name, f.verdict, f.mean_effect, f.variation, f.differ_p.replace("= ", ""), f.reason]);
  showTable("effects", ["feature", "verdict", `mean effect (${fitted.confidence} interval)`, "variation", "p (same effect)", "reason"], rows, [2, 3, 4]);
  [...byId("effects").rows].slice(1).forEach((row, k) => { row.cells[1].className = `word-${features[k].verdict.split(" ")[0]}`; });
  byId("fit-command").textContent = fitted.command;
  byId("forest-note").textContent = `The effect of each feature in each environment, with its ${fitted.confidence} interval. Dashed: the mean effect.`;
  drawForest(fitted);
}

function showComparison() {
  const part = byId("compare-result");
  part.hidden = false;
  part.classList.remove("outdated");
  showSentences("compare-advice", compared.sentences);
  showTable("methods", compared.headings, compared.methods, [1, 2, 3, 4]);
  byId("compare-command").textContent = compared.command;
  drawComparison(compared);
  part.scrollIntoView({ block: "nearest" });
}

function showSentences(id, sentences) {
  byId(id).replaceChildren(...sentences.map((sentence) => element("li", sentence)));
}

function showTable(id, headings, rows, numbers) {
  const look = (i) => (numbers.includes(i) ? "number" : ""), head = element("thead"), body = element("tbody"), names = element("tr");
  names.append(...headings.map((text, i) => Object.assign(element("th", text, look(i)), { scope: "col" })));
  head.append(names);
  body.append(...rows.map((cells) => {
    const row = element("tr");
    row.append(...cells.map((text, i) => (i ? element("td", numbers.includes(i) ? text.replace(/-(?=\d)/g, "−") : text, look(i)) : Object.assign(element("th", text), { scope: "row" }))));
    return row;
  }));
  byId(id).replaceChildren(head, body);
}
