// The first tab: every change of a control asks for new curves, and they are drawn as they come in.

import { markRefused } from "./controls.js";
import { byId } from "./elements.js";
import { state } from "./page_state.js";
import { plotly } from "./plot_style.js";
import { Refused, stream } from "./requests.js";
import { clearTheory, showCode, showConditions, showPredictions } from "./theory_panel.js";
import { dim, drawnByServer, redraw, showOrigin, shown } from "./trajectory_plot.js";

const PATIENCE = 400;
const STALE = 300; // milliseconds after which curves of the previous setting are dimmed
export const latencies = [];
export const opening = {}; // when plotly first drew curves, and which
let number = 0, current = null, clock = null;
let waitingSince = null; // when the change happened whose request has not been sent yet

// Asks for the curves of the state: at once, or when the first curves of the current request are drawn.
export function ask(changedAt = performance.now()) {
  const busy = current && !current.drawn && performance.now() - current.sent < PATIENCE;
  if (!busy) return send(changedAt);
  if (waitingSince === null) setTimeout(sendWaiting, PATIENCE);
  waitingSince = changedAt;
}

function sendWaiting() {
  if (waitingSince !== null) send(waitingSince);
}

async function send(changedAt) {
  waitingSince = null;
  current?.abort.abort();
  const request = { number: ++number, changedAt, sent: performance.now(), drawn: 0, level: "", abort: new AbortController(), sides: {}, texts: [], compiling: new Set() };
  current = request;
  const fresh = request.number === 1 && drawnByServer(); // the page came with the curves of its address
  if (!fresh) setTimeout(() => { if (current === request && shown.number !== request.number) dim("Computing …"); }, STALE);
  const body = { lab: state.lab.name, number: request.number, setting: { ...state.values } };
  try {
    await stream("api/draw", body, (message) => { if (current === request) receive(request, message); }, request.abort.signal);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (current === request) refuse(error.message);
  }
}

export function stop() {
  current?.abort.abort();
  current = null;
}

function refuse(text) {
  current = null;
  clearInterval(clock);
  byId("refused").textContent = text;
  byId("refused").hidden = false;
  byId("status").textContent = "";
  dim("Not drawn: see above.");
  clearTheory();
  markRefused(text);
}

function receive(request, message) {
  if (message.kind === "begin") {
    request.begin = message;
    byId("refused").hidden = true;
    markRefused("");
    showText(request, () => showCode(message));
    if (message.shipped) plotly.then(() => drawShipped(request));
  } else if (message.kind === "compiling") {
    request.compiling.add(message.side);
    request.compiled = true; // its time says nothing about the next request
    showCompiling(request);
    showTexts(request);
  } else if (message.kind === "conditions") {
    request.predicted = message.lines;
    if (shown.number === request.number) drawShipped(request); // with the predicted curves
    showText(request, () => showConditions(message));
  } else if (message.kind === "predictions") showText(request, () => showPredictions(message.sentences));
  else if (message.kind === "curves") {
    request.sides[message.side] = message;
    request.compiling.delete(message.side);
    plotly.then(() => drawLive(request));
  }
}

// A drawing costs as much as several seeds: draw what comes first, and again when all sides have got further.
function drawLive(request) {
  const level = levelOf(request);
  if (current === request && level && level !== request.level) draw(request, level);
}

// Text waits for the curves, because laying it out takes processor time from the workers. It does not wait for a compilation.
function showText(request, show) {
  request.texts.push(show);
  if (request.drawn || request.compiling.size || request.begin.shipped) showTexts(request);
}

function showTexts(request) {
  request.texts.splice(0).forEach((show) => show());
}

// How far all sides have got: some seeds, or all seeds in single or in double precision.
function levelOf(request) {
  const sides = request.begin.sides.map((side) => request.sides[side.name]);
  if (!sides.every(Boolean)) return "";
  if (sides.every((s) => s.seeds === s.of && s.precision === "double")) return "double";
  if (sides.every((s) => s.seeds === s.of)) return "single";
  return `${Math.min(...sides.map((s) => s.seeds))} seeds`;
}

function showCompiling(request) {
  clearInterval(clock);
  const show = () => {
    if (current !== request || request.drawn) return clearInterval(clock);
    const seconds = Math.round((performance.now() - request.sent) / 1000), bar = document.createElement("progress");
    bar.setAttribute("aria-label", "compiling");
    bar.max = request.begin.sides.length + 1e-9;
    bar.value = Object.keys(request.sides).length + Math.min(seconds / 12, 0.9);
    const sentence = `Compiling the program of ${[...request.compiling].join(" and ") || "…"}, once for this kind of setting: ${seconds} s`;
    byId("status").replaceChildren(sentence, bar);
    if (shown.number !== request.number) dim(sentence);
  };
  show();
  clock = setInterval(show, 1000);
}

// The curves that came with the package, until the live ones are ready.
async function drawShipped(request) {
  if (current !== request || request.drawn) return;
  const { version, sides } = request.begin.shipped;
  Object.assign(shown, { begin: request.begin, sides: Object.fromEntries(sides.map((s) => [s.side, s])), predicted: request.predicted ?? [], number: request.number });
  showOrigin("shipped", `Shipped curves (gyrostat ${version}); live ones follow`);
  await redraw();
  noteOpening("shipped");
  if (current !== request || request.drawn) return;
  const status = byId("status");
  if (!request.compiling.size) status.textContent = `${sides[0].of} seeds: medians and quartiles · live ones follow`;
  Object.assign(status.dataset, { level: "shipped", whole: "false", number: String(request.number) });
}

function noteOpening(origin) {
  if (!opening.origin) Object.assign(opening, { origin, milliseconds: performance.now() });
}

async function draw(request, level) {
  const first = !request.drawn;
  request.drawn = performance.now();
  request.level = level;
  Object.assign(shown, { begin: request.begin, sides: { ...request.sides }, predicted: request.predicted ?? [], number: request.number });
  showOrigin("live", "Live: computed on this machine");
  await redraw();
  noteOpening("live");
  setTimeout(() => showTexts(request)); // after the curves are painted
  const passed = performance.now() - request.changedAt;
  if (!request.times) latencies.push((request.times = { first: passed }));
  if (["single", "double"].includes(level)) request.times.whole ??= passed;
  if (level === "double") request.times.double = passed;
  if (current === request) showStatus(request, level);
  if (first) sendWaiting();
}

function showStatus(request, level) {
  const sides = Object.values(request.sides), seeds = Math.min(...sides.map((s) => s.seeds)), of = sides[0].of;
  const single = sides.some((s) => s.precision === "single") ? ["single precision, every other step; double precision follows"] : [];
  const diverged = sides.filter((s) => s.diverged).map((s) => `${s.diverged} of ${s.seeds} ${s.side} runs left the finite range`);
  const time = request.compiled ? [] : [`drawn ${timeText(request.times.whole ?? request.times.first)} after the change`];
  const status = byId("status");
  const counted = seeds < of ? `${seeds} of ${of} seeds so far` : `${of} seeds`;
  status.textContent = [`${counted}: medians and quartiles`, ...single, ...diverged, ...time].join(" · ");
  status.dataset.level = level;
  status.dataset.whole = String(level === "double");
  status.dataset.number = String(request.number);
}

const timeText = (ms) => (ms < 2000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
