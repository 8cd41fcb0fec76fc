// The third tab: a table with an environment column, its effects as a forest plot, verdicts and advice.

import { byId, element, escapeMarkup } from "./elements.js";
import { axis, colour, CONFIG, layout, plotly, seriesColour, SYMBOLS } from "./plot_style.js";
import { Refused, stream } from "./requests.js";

const MOST_BYTES = 7_500_000;
const LOOKS = { kept: { series: 2, text: "--holds" }, removed: { series: 1, text: "--fails" } };
const OTHER_LOOK = { series: 6, text: "--quiet" };
let number = 0, abort = null, source = null, diagnosis = null;

export function build(examples) {
  byId("example").replaceChildren(new Option("—", ""), ...examples.map((name) => new Option(name, name)));
  byId("example").value = examples[0];
  byId("example").addEventListener("change", () => { byId("file").value = ""; choose({ example: byId("example").value }); });
  byId("file").addEventListener("change", async () => {
    const [file] = byId("file").files;
    if (!file) return;
    byId("example").value = "";
    if (file.size > MOST_BYTES) return refuse("The file is larger than 7.5 MB: use gyrostat fit on the command line.");
    choose({ text: await file.text() });
  });
  for (const id of ["target", "environment", "missing"]) byId(id).addEventListener("change", diagnose);
}

export function open() {
  if (!source) choose({ example: byId("example").value });
}

async function ask(body, receive) {
  abort?.abort();
  abort = new AbortController();
  const mine = abort;
  byId("data-refused").hidden = true;
  try {
    await stream("api/table", { number: ++number, ...body }, (message) => { if (abort === mine) receive(message); }, mine.signal);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    refuse(error.message);
  }
}

function refuse(text) {
  byId("data-refused").textContent = text;
  byId("data-refused").hidden = false;
  byId("data-status").textContent = "";
}

async function choose(chosen) {
  if (!chosen.text && !chosen.example) return;
  source = chosen;
  let ready = false;
  await ask(source, (message) => {
    if (message.kind !== "columns") return;
    for (const id of ["target", "environment"]) {
      byId(id).replaceChildren(...message.columns.map((name) => new Option(name, name)));
      byId(id).value = message[id];
    }
    ready = true;
  });
  if (ready) diagnose();
}

function diagnose() {
  byId("data-status").textContent = "Comparing environments …";
  const body = { ...source, target: byId("target").value, environment: byId("environment").value, missing: byId("missing").checked ? "drop" : "error" };
  ask(body, (message) => { if (message.kind === "diagnosis") { diagnosis = message; show(); } });
}

function show() {
  byId("data-status").textContent = `${diagnosis.rows} rows in ${diagnosis.environments.length} environments`;
  byId("advice").replaceChildren(...diagnosis.advice.map((sentence) => element("li", sentence)));
  const head = element("tr"), body = diagnosis.features.map((f) => {
    const row = element("tr");
    row.append(element("td", f.name), element("td", f.verdict, `word-${f.verdict.split(" ")[0]}`), element("td", f.mean.toPrecision(3), "number"),
      element("td", f.variation, "number"), element("td", f.differ_p.replace("= ", ""), "number"), element("td", f.reason));
    return row;
  });
  head.append(...["feature", "verdict", "mean effect", "variation", "p, all the same", "reason"].map((t, i) => element("th", t, 2 <= i && i <= 4 ? "number" : "")));
  byId("effects").replaceChildren(head, ...body);
  redraw();
}

// A forest plot: a panel for each feature, a row for each environment.
export async function redraw() {
  await plotly;
  if (!diagnosis) return;
  const n = diagnosis.features.length, across = Math.min(n, Math.max(1, Math.floor(byId("forest").clientWidth / 230))), down = Math.ceil(n / across);
  const traces = [], axes = {}, titles = [], names = diagnosis.environments;
  diagnosis.features.forEach((f, k) => {
    const suffix = k ? String(k + 1) : "", i = k % across, j = Math.floor(k / across), width = 1 / across, height = 1 / down;
    const look = LOOKS[f.verdict] ?? OTHER_LOOK, ink = seriesColour(look.series);
    const gap = 0.13 * width, room = Math.min(0.3 * height, 60 / (down * 190)), left = i * width + (i ? gap / 2 : 0), top = 1 - j * height - room / 2;
    const panel = { xaxis: "x" + suffix, yaxis: "y" + suffix, showlegend: false };
    axes["xaxis" + suffix] = axis("", { domain: [left, (i + 1) * width - gap / 2], anchor: "y" + suffix, zeroline: true, zerolinecolor: colour("--ink"), nticks: 4 });
    axes["yaxis" + suffix] = axis("", { domain: [1 - (j + 1) * height + room / 2, top], anchor: "x" + suffix, type: "category", autorange: "reversed", showticklabels: i === 0, showgrid: false });
    traces.push({
      ...panel, x: f.effect, y: names, mode: "markers", name: f.name, marker: { color: ink, size: 8, symbol: SYMBOLS[look.series] }, hovertemplate: "%{y}: %{x:.3g}<extra></extra>",
      error_x: { type: "data", symmetric: false, array: f.high.map((h, e) => h - f.effect[e]), arrayminus: f.low.map((l, e) => f.effect[e] - l), color: ink, thickness: 1.6, width: 0 },
    });
    traces.push({ ...panel, x: [f.mean, f.mean], y: [names[0], names.at(-1)], mode: "lines", line: { color: colour("--quiet"), width: 1.2, dash: "5px,3px" }, hoverinfo: "skip" });
    titles.push({ text: `<b>${escapeMarkup(f.name).slice(0, 60)}</b>: ${f.verdict}`, x: left, y: top, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, font: { color: colour(look.text), size: 12.5 } });
  });
  const height = 30 + down * Math.max(150, 20 * names.length + 70);
  Plotly.react(byId("forest"), traces, layout({ ...axes, annotations: titles, height, margin: { l: 70, r: 10, t: 28, b: 30 }, hovermode: "closest" }), CONFIG);
}
