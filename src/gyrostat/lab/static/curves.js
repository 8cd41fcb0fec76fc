// Trajectories: every change asks for new curves; what comes in is drawn as it comes.

import { markRefused } from "./controls.js";
import { Refused, stream } from "./net.js";
import { redraw, shown } from "./plot.js";
import { state } from "./state.js";
import { showConditions, showPredictions, showReproduce } from "./theory.js";

const status = document.getElementById("status"), refused = document.getElementById("refused");
const PATIENCE = 400;
export const latencies = [];
let number = 0, flight = null, wanted = null, clock = null;

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
  const mine = { number: ++number, moved, sent: performance.now(), drawn: 0, level: "", abort: new AbortController(), parts: {}, said: [], compiling: new Set() };
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
    say(mine, () => showReproduce(message));
  } else if (message.kind === "compiling") {
    mine.compiling.add(message.side);
    mine.first = true; // its time says nothing about the next
    tellCompiling(mine);
    saySaid(mine);
  } else if (message.kind === "conditions") {
    mine.lines = message.lines;
    say(mine, () => showConditions(message.conditions));
  } else if (message.kind === "predictions") say(mine, () => showPredictions(message.sentences));
  else if (message.kind === "curves") {
    mine.parts[message.side] = message;
    mine.compiling.delete(message.side);
    const level = levelOf(mine);
    // A drawing costs as much as some seeds: one of what comes first, and one when all sides have come further.
    if (level && level !== mine.level) draw(mine, level);
  }
}

// Words wait for the curves: to set them takes the processor from those who make the curves. A compilation they do not wait for.
function say(mine, words) {
  mine.said.push(words);
  if (mine.drawn || mine.compiling.size) saySaid(mine);
}

function saySaid(mine) {
  mine.said.splice(0).forEach((words) => words());
}

// How far all sides have come: some seeds, or all in single or in double precision.
function levelOf(mine) {
  const parts = mine.begin.sides.map((side) => mine.parts[side.name]);
  if (!parts.every(Boolean)) return "";
  if (parts.every((p) => p.seeds === p.of && p.precision === "double")) return "double";
  if (parts.every((p) => p.seeds === p.of)) return "single";
  return `${Math.min(...parts.map((p) => p.seeds))} seeds`;
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

async function draw(mine, level) {
  const first = !mine.drawn;
  mine.drawn = performance.now();
  mine.level = level;
  Object.assign(shown, { begin: mine.begin, sides: { ...mine.parts }, lines: mine.lines ?? [], number: mine.number });
  await redraw();
  setTimeout(() => saySaid(mine)); // after the curves are painted
  const passed = performance.now() - mine.moved;
  if (!mine.times) latencies.push((mine.times = { first: passed }));
  if (["single", "double"].includes(level)) mine.times.whole ??= passed;
  if (level === "double") mine.times.double = passed;
  if (flight === mine) tell(mine, level);
  if (first && wanted !== null) next();
}

function tell(mine, level) {
  const parts = Object.values(mine.parts), seeds = Math.min(...parts.map((p) => p.seeds)), of = parts[0].of;
  const lost = parts.filter((p) => p.diverged).map((p) => `${p.diverged} of ${p.seeds} ${p.side} runs left the finite range`);
  const precision = parts.some((p) => p.precision === "single") ? ["single precision and every other step, all in double follow"] : [];
  status.textContent = [`${seeds} of ${of} seeds: medians and quartiles`, ...precision, ...lost, ...(mine.first ? [] : [`drawn ${shownTime(mine.times.whole ?? mine.times.first)} after the change`])].join(" · ");
  status.dataset.level = level;
  status.dataset.whole = String(level === "double");
  status.dataset.number = String(mine.number);
}

const shownTime = (ms) => (ms < 2000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
