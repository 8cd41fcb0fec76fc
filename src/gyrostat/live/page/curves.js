// Trajectories: every change asks for new curves; what comes in is drawn as it comes.

import { markRefused } from "./controls.js";
import { axis, colours, CONFIG, css, DASHES, faded, layout } from "./looks.js";
import { Refused, stream } from "./net.js";
import { state } from "./state.js";
import { showConditions, showPredictions, showReproduce } from "./theory.js";

const plot = document.getElementById("plot"), status = document.getElementById("status"), refused = document.getElementById("refused");
const PATIENCE = 400;
export const latencies = [];
export const shown = { begin: null, sides: {}, lines: [], number: 0 };
let number = 0, flight = null, wanted = null, frame = 0, clock = null;

// Asks for the curves of the state: at once, or when the first curves of the last request are there.
export function ask(moved = performance.now()) {
  const waits = flight && !flight.drawn && performance.now() - flight.sent < PATIENCE;
  if (!waits) return send(moved);
  if (wanted === null) setTimeout(next, PATIENCE);
  wanted = moved;
}

function next() {
  if (wanted === null) return;
  const moved = wanted;
  wanted = null;
  send(moved);
}

async function send(moved) {
  wanted = null;
  flight?.abort.abort();
  const mine = { number: ++number, moved, sent: performance.now(), drawn: 0, abort: new AbortController(), parts: {}, compiling: new Set() };
  flight = mine;
  const body = { lab: state.lab.name, number: mine.number, setting: { ...state.values } };
  try {
    await stream("api/draw", body, (message) => { if (flight === mine) hear(mine, message); }, mine.abort.signal);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (flight === mine) refuse(error.message);
  }
}

export function stop() {
  flight?.abort.abort();
  flight = null;
}

function refuse(text) {
  flight = null;
  clearInterval(clock);
  refused.textContent = text;
  refused.hidden = false;
  status.textContent = "What is drawn belongs to the setting before.";
  markRefused(text);
}

function hear(mine, message) {
  if (message.kind === "begin") {
    mine.begin = message;
    refused.hidden = true;
    markRefused("");
    showReproduce(message);
  } else if (message.kind === "compiling") {
    mine.compiling.add(message.side);
    tellCompiling(mine);
  } else if (message.kind === "conditions") {
    showConditions(message.conditions);
    mine.lines = message.lines;
  } else if (message.kind === "predictions") showPredictions(message.sentences);
  else if (message.kind === "curves") {
    mine.parts[message.side] = message;
    mine.compiling.delete(message.side);
    const parts = mine.begin.sides.map((side) => mine.parts[side.name]);
    // A drawing costs as much as some seeds: one with the first of them, one with all, and between them only if that takes long.
    const due = !mine.drawn || parts.every((p) => p?.seeds === p?.of) || performance.now() - mine.drawn > PATIENCE;
    if (parts.every(Boolean) && due) draw(mine);
  }
}

function tellCompiling(mine) {
  clearInterval(clock);
  const tell = () => {
    if (flight !== mine || mine.drawn) return clearInterval(clock);
    const seconds = Math.round((performance.now() - mine.sent) / 1000), bar = document.createElement("progress");
    bar.setAttribute("aria-label", "compiling");
    bar.max = mine.begin.sides.length + 1e-9;
    bar.value = Object.keys(mine.parts).length + Math.min(seconds / 12, 0.9);
    status.replaceChildren(`Compiling the program of ${[...mine.compiling].join(" and ") || "…"}, once for this kind of setting: ${seconds} s`, bar);
  };
  tell();
  clock = setInterval(tell, 1000);
}

function draw(mine) {
  const first = !mine.drawn;
  mine.drawn = performance.now();
  Object.assign(shown, { begin: mine.begin, sides: mine.parts, lines: mine.lines ?? [], number: mine.number });
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(async () => {
    await redraw();
    if (!mine.times) latencies.push((mine.times = { first: performance.now() - mine.moved }));
    const parts = Object.values(mine.parts);
    if (parts.every((p) => p.seeds === p.of)) mine.times.whole ??= performance.now() - mine.moved;
    tell(parts, mine);
  });
  if (first && wanted !== null) next();
}

function tell(parts, mine) {
  const seeds = Math.min(...parts.map((p) => p.seeds)), of = parts[0].of;
  const lost = parts.filter((p) => p.diverged).map((p) => `${p.diverged} of ${p.seeds} ${p.side} runs left the finite range`);
  status.textContent = [`${seeds} of ${of} seeds: medians and quartiles`, ...lost, `drawn ${shownTime(mine.times.whole ?? mine.times.first)} after the change`].join(" · ");
  status.dataset.whole = String(seeds === of);
  status.dataset.number = String(mine.number);
}

const shownTime = (ms) => (ms < 2000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

export function redraw() {
  if (!shown.begin) return null;
  const { view, sides } = shown.begin, narrow = plot.clientWidth < 560 && !view.together;
  plot.parentElement.classList.toggle("stacked", narrow);
  const panels = view.together ? 1 : sides.length, traces = [], marks = [], axes = {};
  for (let k = 0; k < panels; k++) {
    const from = k / panels + (k ? 0.035 : 0), to = (k + 1) / panels - (k < panels - 1 ? 0.035 : 0), tail = k ? String(k + 1) : "";
    const time = axis(narrow && k < panels - 1 ? "" : "step", { type: view.log_time ? "log" : "linear", nticks: 6, anchor: "y" + tail, domain: narrow ? [0, 1] : [from, to] });
    const up = axis(narrow || k ? "" : view.label, { showticklabels: narrow || !k, type: view.log ? "log" : "linear", anchor: "x" + tail, rangemode: view.log ? "normal" : "tozero" });
    if (narrow) up.domain = [1 - (k + 1) / panels + (k < panels - 1 ? 0.07 : 0), 1 - k / panels - (k ? 0.09 : 0)];
    if (k && !narrow) up.matches = "y";
    axes["xaxis" + tail] = time;
    axes["yaxis" + tail] = up;
    if (!view.together) {
      const top = narrow ? up.domain[1] : 1;
      marks.push({ text: `<b>${escape(sides[k].title)}</b>`, x: narrow ? 0 : from, y: top, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 13 } });
    }
  }
  if (!view.log && !narrow) axes.yaxis.range = sharedRange();
  sides.forEach((side, k) => view.curves.forEach((curve, i) => traces.push(...band(side, curve, view.together ? k : i, view.together ? 0 : k))));
  for (const line of shown.lines) {
    const k = view.together ? 0 : sides.findIndex((side) => side.name === line.side);
    traces.push({ x: line.x, y: line.y, name: line.label, xaxis: name("x", k), yaxis: name("y", k), mode: "lines", legendgroup: line.label, showlegend: k === 0, line: { color: css("--ink"), width: 1.3, dash: "5px,3px" }, hoverinfo: "skip" });
  }
  const look = layout({ ...axes, annotations: marks, uirevision: view.title });
  if (narrow) {
    Object.assign(look.margin, { l: 40, t: 52 });
    look.title = { text: view.label, font: { size: 12 }, x: 0, xref: "paper", y: 0.99, yanchor: "top" };
  }
  return Plotly.react(plot, traces, look, CONFIG);
}

const name = (letter, k) => letter + (k ? String(k + 1) : "");
const escape = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

// The same upper end on both sides, so that they can be compared; what explodes is cut at the upper quartile's tenfold median.
function sharedRange() {
  let top = 0;
  for (const part of Object.values(shown.sides)) for (const curve of Object.values(part.curves)) {
    const middle = Math.max(...curve.middle.map((v) => v ?? 0)), high = Math.max(...curve.high.map((v) => v ?? 0));
    top = Math.max(top, Math.min(high, 3 * middle), Math.min(middle, 50));
  }
  return [0, 1.06 * (top || 1)];
}

function band(side, curve, look, panel) {
  const part = shown.sides[side.name], { low, middle, high } = part.curves[curve.key], colour = colours()[look % 7];
  const at = { x: part.steps, xaxis: name("x", panel), yaxis: name("y", panel) }, quiet = { mode: "lines", hoverinfo: "skip", showlegend: false };
  const label = shown.begin.view.together ? side.title : curve.label;
  const positive = (values) => (shown.begin.view.log ? values.map((v) => (v > 0 ? v : null)) : values);
  return [
    { ...at, ...quiet, y: positive(low), line: { width: 0, color: colour }, legendgroup: label },
    { ...at, ...quiet, y: positive(high), line: { width: 0, color: colour }, fill: "tonexty", fillcolor: faded(colour, 0.17), legendgroup: label },
    { ...at, y: positive(middle), name: label, mode: "lines", line: { color: colour, width: 2.2, dash: DASHES[look % 7] }, legendgroup: label, showlegend: panel === 0, hovertemplate: "%{y:.3g}" },
  ];
}

export async function save(kind) {
  const file = `gyrostat-${state.lab.name}-${state.values.view.replace(/\W+/g, "-")}`;
  if (kind !== "csv") return Plotly.downloadImage(plot, { format: kind, filename: file, width: 1100, height: 560, scale: kind === "png" ? 2 : 1 });
  const rows = ["side,curve,step,low,median,high"];
  for (const part of Object.values(shown.sides)) for (const [key, curve] of Object.entries(part.curves))
    part.steps.forEach((t, i) => rows.push([part.side, key, t, curve.low[i] ?? "", curve.middle[i] ?? "", curve.high[i] ?? ""].join(",")));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([rows.join("\n") + "\n"], { type: "text/csv" }));
  link.download = file + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
