// The third tab: a table with an environment column, its effects as a forest plot, verdicts and advice.

import { axis, colours, CONFIG, css, layout, SYMBOLS } from "./looks.js";
import { Refused, stream } from "./net.js";

const $ = (id) => document.getElementById(id);
const element = (tag, text, kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });
let number = 0, abort = null, source = null, found = null;

export function build(examples) {
  $("example").replaceChildren(new Option("—", ""), ...examples.map((name) => new Option(name, name)));
  $("example").value = examples[0];
  $("example").addEventListener("change", () => { $("file").value = ""; choose({ example: $("example").value }); });
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    if (!file) return;
    $("example").value = "";
    if (file.size > 7_500_000) return refuse("The file is larger than 7.5 MB: use gyrostat fit on the command line.");
    choose({ text: await file.text() });
  });
  for (const id of ["target", "environment", "missing"]) $(id).addEventListener("change", diagnose);
}

export function open() {
  if (!source) choose({ example: $("example").value });
}

async function ask(body, hear) {
  abort?.abort();
  abort = new AbortController();
  const mine = abort;
  $("data-refused").hidden = true;
  try {
    await stream("api/table", { number: ++number, ...body }, (message) => { if (abort === mine) hear(message); }, mine.signal);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    refuse(error.message);
  }
}

function refuse(text) {
  $("data-refused").textContent = text;
  $("data-refused").hidden = false;
  $("data-status").textContent = "";
}

async function choose(chosen) {
  if (!chosen.text && !chosen.example) return;
  source = chosen;
  let ready = false;
  await ask(source, (message) => {
    if (message.kind !== "columns") return;
    for (const id of ["target", "environment"]) {
      $(id).replaceChildren(...message.columns.map((name) => new Option(name, name)));
      $(id).value = message[id];
    }
    ready = true;
  });
  if (ready) diagnose();
}

function diagnose() {
  $("data-status").textContent = "Comparing environments …";
  const body = { ...source, target: $("target").value, environment: $("environment").value, missing: $("missing").checked ? "drop" : "error" };
  ask(body, (message) => { if (message.kind === "diagnosis") { found = message; show(); } });
}

function show() {
  $("data-status").textContent = `${found.rows} rows in ${found.environments.length} environments`;
  $("advice").replaceChildren(...found.advice.map((sentence) => element("li", sentence)));
  const head = element("tr", ""), body = found.features.map((f) => {
    const row = element("tr", "");
    row.append(element("td", f.name), element("td", f.verdict, `word-${f.verdict.split(" ")[0]}`), element("td", f.mean.toPrecision(3), "number"),
      element("td", f.variation, "number"), element("td", f.differ_p.replace("= ", ""), "number"), element("td", f.reason));
    return row;
  });
  head.append(...["feature", "verdict", "mean effect", "variation", "p, all the same", "reason"].map((t, i) => element("th", t, 2 <= i && i <= 4 ? "number" : "")));
  $("effects").replaceChildren(head, ...body);
  redraw();
}

export function redraw() {
  if (!found) return;
  const n = found.features.length, across = Math.min(n, Math.max(1, Math.floor($("forest").clientWidth / 230))), down = Math.ceil(n / across);
  const traces = [], axes = {}, marks = [], names = found.environments;
  found.features.forEach((f, k) => {
    const tail = k ? String(k + 1) : "", i = k % across, j = Math.floor(k / across), width = 1 / across, height = 1 / down;
    const word = { kept: 2, removed: 1 }[f.verdict] ?? 6, colour = colours()[word];
    const gap = 0.13 * width, room = Math.min(0.3 * height, 60 / (down * 190));
    axes["xaxis" + tail] = axis("", { domain: [i * width + (i ? gap / 2 : 0), (i + 1) * width - gap / 2], anchor: "y" + tail, zeroline: true, zerolinecolor: css("--ink"), nticks: 4 });
    axes["yaxis" + tail] = axis("", { domain: [1 - (j + 1) * height + room / 2, 1 - j * height - room / 2], anchor: "x" + tail, type: "category", autorange: "reversed", showticklabels: i === 0, showgrid: false });
    traces.push({
      x: f.effect, y: names, xaxis: "x" + tail, yaxis: "y" + tail, mode: "markers", name: f.name, showlegend: false,
      marker: { color: colour, size: 8, symbol: SYMBOLS[word % 7] }, hovertemplate: "%{y}: %{x:.3g}<extra></extra>",
      error_x: { type: "data", symmetric: false, array: f.high.map((h, e) => h - f.effect[e]), arrayminus: f.low.map((l, e) => f.effect[e] - l), color: colour, thickness: 1.6, width: 0 },
    });
    traces.push({ x: [f.mean, f.mean], y: [names[0], names.at(-1)], xaxis: "x" + tail, yaxis: "y" + tail, mode: "lines", line: { color: css("--quiet"), width: 1.2, dash: "5px,3px" }, showlegend: false, hoverinfo: "skip" });
    marks.push({ text: `<b>${f.name.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]).slice(0, 60)}</b>: ${f.verdict}`, x: i * width + (i ? gap / 2 : 0), y: 1 - j * height - room / 2, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, font: { color: colour, size: 12.5 } });
  });
  Plotly.react($("forest"), traces, layout({ ...axes, annotations: marks, height: 30 + down * Math.max(150, 20 * names.length + 70), margin: { l: 70, r: 10, t: 28, b: 30 }, hovermode: "closest" }), CONFIG);
}
