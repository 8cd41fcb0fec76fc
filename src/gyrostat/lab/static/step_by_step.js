// The tab "Step by step": one run as pictures that change, with buttons to play it and words for what is seen.

import { byId } from "./elements.js";
import { state } from "./page_state.js";
import { Refused, stream } from "./requests.js";

const SVG = "http://www.w3.org/2000/svg", PAUSE = 220; // milliseconds between two pictures
let run = null, at = 0, timer = 0, abort = null, number = 0;

export function build() {
  byId("play").addEventListener("click", () => (timer ? pause() : play()));
  byId("frame").addEventListener("input", () => { pause(); show(Number(byId("frame").value)); });
}

// Asks for the pictures of the present setting.
export function ask() {
  stop();
  abort = new AbortController();
  const mine = abort;
  byId("pictures").classList.add("stale");
  byId("play").disabled = byId("frame").disabled = true;
  byId("seen").textContent = "Computing the steps: this takes some seconds the first time …";
  byId("play-refused").hidden = true;
  const body = { lab: state.lab.name, number: ++number, setting: { ...state.values } };
  stream("api/steps", body, (message) => { if (abort === mine && message.kind === "frames") begin(message); }, mine.signal).catch((error) => {
    if (!(error instanceof Refused)) throw error;
    byId("play-refused").textContent = error.message;
    byId("play-refused").hidden = false;
    byId("seen").textContent = "";
  });
}

export function stop() {
  pause();
  abort?.abort();
  abort = null;
}

function begin(message) {
  run = message;
  byId("pictures").classList.remove("stale");
  byId("play").disabled = byId("frame").disabled = false;
  byId("frame").max = run.steps.length - 1;
  show(0);
}

function play() {
  if (at === run.steps.length - 1) show(0);
  byId("play").textContent = "Pause";
  timer = setInterval(() => (at === run.steps.length - 1 ? pause() : show(at + 1)), PAUSE);
}

function pause() {
  clearInterval(timer);
  timer = 0;
  byId("play").textContent = "Play";
}

function show(index) {
  at = index;
  const step = run.steps[at], environment = step % run.strengths.length, { hetero, pooled } = run.products;
  byId("frame").value = at;
  byId("frame").setAttribute("aria-valuetext", `step ${step}`);
  draw("target-hetero", run.targets[environment]);
  draw("target-pooled", average());
  draw("product-hetero", hetero[at]);
  draw("product-pooled", pooled[at]);
  byId("name-hetero").textContent = `Target of this batch: environment ${"AB"[environment]}, spurious strength ${minus(run.strengths[environment])}`;
  for (const side of ["hetero", "pooled"]) byId(`name-product-${side}`).textContent = `What the model has learnt, U\u00a0Uᵀ: ${amounts(side)}`;
  byId("seen").textContent = words(step, environment);
}

const average = () => run.targets[0].map((row, i) => row.map((_, j) => run.targets.reduce((sum, T) => sum + T[i][j], 0) / run.targets.length));

const minus = (number) => String(number).replace("-", "−");

// The mean of the diagonal over some directions.
function held(matrix, from, count) {
  let sum = 0;
  for (let i = from; i < from + count; i++) sum += matrix[i][i] ?? Infinity;
  return sum / count;
}

// How much of the invariant and of the spurious signal a side holds now.
const heldNow = (side) => [held(run.products[side][at], 0, run.rank), held(run.products[side][at], run.rank, run.spurious_rank)];

function amounts(side) {
  const now = heldNow(side);
  return now.every(Number.isFinite) ? `${minus(now[0].toFixed(2))} invariant, ${minus(now[1].toFixed(2))} spurious` : "the run has diverged";
}

function words(step, environment) {
  const pull = run.strengths[environment] < 0 ? "down" : "up";
  const now = `Step ${step}. With one environment per batch, environment ${"AB"[environment]} pulls the spurious square ${pull} now. A mixed batch has the same average as its target at every step.`;
  if (at < run.steps.length - 1) return now;
  return `Step ${step}, the last. One environment per batch ${kept("hetero")}; mixed batches ${kept("pooled")}.`;
}

// What a side has learnt: a signal counts from half its size.
function kept(side) {
  const [invariant, spurious] = heldNow(side);
  if (![invariant, spurious].every(Number.isFinite)) return "diverged";
  if (invariant > 0.5) return spurious > 0.5 ? "learnt both signals" : "learnt the invariant signal and forgot the spurious one";
  return spurious > 0.5 ? "learnt the spurious signal only" : "learnt neither signal in this time";
}

// A matrix as squares: blue above zero, orange below, the stronger the further from zero. Numbers stand in the squares of signals.
function draw(id, matrix) {
  const svg = byId(id), n = matrix.length, signals = run.rank + run.spurious_rank;
  if (svg.childElementCount !== n * n + signals) fill(svg, n, signals);
  matrix.forEach((row, i) => row.forEach((value, j) => { svg.children[i * n + j].style.fill = shade(value); }));
  for (let i = 0; i < signals; i++) {
    const text = svg.children[n * n + i], value = matrix[i][i];
    text.textContent = value === null ? "∞" : minus(Number(value.toFixed(Math.abs(value) < 9.95 ? 1 : 0)));
    text.style.fill = Math.abs(value ?? 1) > 0.55 ? "var(--paper)" : "var(--ink)";
  }
}

function shade(value) {
  const share = Math.round(100 * Math.min(Math.abs(value ?? 1), 1));
  return `color-mix(in srgb, var(--series-${value < 0 ? 1 : 0}) ${share}%, var(--paper))`;
}

function fill(svg, n, signals) {
  svg.setAttribute("viewBox", `0 0 ${n} ${n}`);
  const make = (tag, attributes) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const squares = Array.from({ length: n * n }, (_, k) => make("rect", { x: k % n, y: Math.floor(k / n), width: 0.96, height: 0.96 }));
  const numbers = Array.from({ length: signals }, (_, i) => make("text", { x: i + 0.48, y: i + 0.62, "text-anchor": "middle", "font-size": 0.4 }));
  svg.replaceChildren(...squares, ...numbers);
}
