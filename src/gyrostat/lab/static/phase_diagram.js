// The second tab: the phase diagram around the current point. Cells are drawn as they come in; a click on one moves the sliders.

import { byId, element } from "./elements.js";
import { state } from "./page_state.js";
import { axis, colour, CONFIG, layout, plotly, seriesColour } from "./plot_style.js";
import { Refused, stream } from "./requests.js";

const PAUSE = 400;
let number = 0, abort = null, plane = null, cells = null, timer = null, onClick = null;

// Asks for the diagram around the state; `move(values)` is called for a clicked cell.
export function ask(move) {
  stop();
  onClick = move;
  abort = new AbortController();
  const mine = abort;
  byId("phase-refused").hidden = true;
  byId("phase-plot").classList.add("stale"); // the cells of another setting
  byId("phase-status").textContent = "Waiting for the first cells …";
  const body = { lab: state.lab.name, number: ++number, setting: { ...state.values } };
  stream("api/phase", body, (message) => { if (abort === mine) receive(message); }, mine.signal).catch((error) => {
    if (!(error instanceof Refused)) throw error;
    byId("phase-refused").textContent = error.message;
    byId("phase-refused").hidden = false;
    byId("phase-status").textContent = "";
  });
}

export function stop() {
  abort?.abort();
  abort = plane = null;
  clearTimeout(timer);
  timer = null;
}

function receive(message) {
  if (message.kind === "plane") {
    plane = message;
    cells = plane.y.map(() => plane.x.map(() => null));
    showLegend();
    byId("phase-note").textContent = [plane.note, boundaryIsSeen() ? "" : `The predicted line (${plane.boundary[0]}) lies outside this diagram.`].filter(Boolean).join(" ");
  } else if (message.kind === "cell") {
    cells[message.i][message.j] = message;
    const status = byId("phase-status"), complete = message.done === message.of;
    status.textContent = complete ? `All ${message.of} cells, ${plane.seeds} seeds each` : `${message.done} of ${message.of} cells`;
    status.dataset.done = message.done;
  }
  // Not after every cell: a click during a drawing is lost.
  timer ??= setTimeout(redraw, message.kind === "plane" ? 0 : PAUSE);
}

const control = (name) => state.lab.controls.find((c) => c.name === name);
const threeDigits = (x) => String(Number(x.toPrecision(3)));

function planeAxis(name, values, log, more = {}) {
  const ticks = log ? { dtick: "D2", tickformat: "~g", exponentformat: "none" } : {};
  const title = `${control(name).label} ${control(name).symbol}`;
  return axis(title, { type: log ? "log" : "linear", range: ends(values, log), showgrid: false, ...ticks, ...more });
}

// Half a cell beyond the first and the last value.
function ends(values, log) {
  const [a, b] = [values[0], values.at(-1)], n = values.length - 1;
  if (log) { const half = Math.log10(b / a) / n / 2; return [Math.log10(a) - half, Math.log10(b) + half]; }
  return [a - (b - a) / n / 2, b + (b - a) / n / 2];
}

const COLOURS = [0, 4, 6]; // of the outcomes, among those of the series: blue, orange, grey
const outcomeColour = (k) => seriesColour(COLOURS[k]);

function heatmap() {
  const kind = plane.outcomes.length ? outcomeMap() : numberMap();
  return { type: "heatmap", x: plane.x, y: plane.y, hoverongaps: false, xgap: 1, ygap: 1, ...kind,
    hovertemplate: `${control(plane.across).symbol} = %{x:.3g}<br>${control(plane.up).symbol} = %{y:.3g}<br>%{text}<extra></extra>` };
}

const eachCell = (show) => cells.map((row) => row.map((cell) => (cell === null ? null : show(cell))));

// A colour for the most frequent outcome; the counts of all outcomes are in the words of a cell.
function outcomeMap() {
  const count = plane.outcomes.length, band = (k) => [[k / count, outcomeColour(k)], [(k + 1) / count, outcomeColour(k)]];
  const words = ({ counts }) => plane.outcomes.map((name, k) => `${counts[k]} of ${plane.seeds} runs: ${name}`).filter((_, k) => counts[k]).join("<br>");
  return { z: eachCell((cell) => cell.value), zmin: -0.5, zmax: count - 0.5, showscale: false, colorscale: plane.outcomes.flatMap((_, k) => band(k)), text: eachCell(words) };
}

function numberMap() {
  const title = { text: `log₁₀ ${plane.label}`, side: "right", font: { size: 13 } };
  return { z: eachCell(({ value }) => (value === null ? null : Math.log10(Math.max(value, 1e-30)))), colorscale: plane.colours, colorbar: { title, thickness: 14 },
    text: eachCell(({ value }) => `${plane.label}: ${value === null ? "diverged" : value.toPrecision(2)}`) };
}

// The outcomes and their colours as text of the page, below the diagram.
function showLegend() {
  byId("outcomes").replaceChildren(...plane.outcomes.map((name, k) => {
    const item = element("li", name), patch = element("span", "", "patch");
    patch.style.background = `var(--series-${COLOURS[k]})`;
    item.prepend(patch);
    return item;
  }));
}

// The first and the last value that an axis shows.
const edges = (values, log) => (log ? ends(values, log).map((power) => 10 ** power) : ends(values, log));

function boundaryIsSeen() {
  if (!plane.boundary) return true; // there is none to miss
  const [, x, y] = plane.boundary, [left, right] = edges(plane.x, plane.log_x), [low, high] = edges(plane.y, plane.log_y);
  return x.some((value, k) => left <= value && value <= right && low <= y[k] && y[k] <= high);
}

// White on black, to be seen on every colour of the map. A straight one goes from edge to edge.
function boundary() {
  if (!plane.boundary || !boundaryIsSeen()) return [];
  const [name, ...places] = plane.boundary, same = (values) => values.every((value) => value === values[0]);
  const x = same(places[1]) ? edges(plane.x, plane.log_x) : places[0], y = same(places[0]) ? edges(plane.y, plane.log_y) : places[1], line = { x, y, mode: "lines", name, hoverinfo: "skip" };
  return [{ ...line, showlegend: false, line: { color: "#000000", width: 5, dash: "solid" } },
    { ...line, showlegend: true, line: { color: "#ffffff", width: 2, dash: "6px,4px" } }];
}

function currentPoint() {
  const point = { x: [Number(state.values[plane.across])], y: [Number(state.values[plane.up])], mode: "markers", name: "you are here", hoverinfo: "skip" };
  return [{ ...point, showlegend: false, marker: { symbol: "circle-open", size: 18, color: "#000", line: { width: 6, color: "#000" } } },
    { ...point, marker: { symbol: "circle-open", size: 15, color: "#ffffff", line: { width: 3, color: "#ffffff" } } }];
}

export async function redraw() {
  await plotly;
  clearTimeout(timer);
  timer = null;
  if (!plane) return;
  const plot = byId("phase-plot"), narrow = plot.clientWidth < 560;
  plot.classList.remove("stale");
  const style = layout({
    xaxis: planeAxis(plane.across, plane.x, plane.log_x, { automargin: "height" }), yaxis: planeAxis(plane.up, plane.y, plane.log_y), hovermode: "closest",
    title: { text: narrow ? plane.title.replace(" (", "<br>(") : plane.title, font: { size: 14 }, x: 0, xref: "paper" }, plot_bgcolor: colour("--gap"),
  });
  style.margin.t = narrow ? 56 : 34;
  style.legend = { ...style.legend, bgcolor: "#3b4048", font: { color: "#ffffff" } };
  Plotly.react(plot, [heatmap(), ...boundary(), ...currentPoint()], style, CONFIG).then(() => {
    plot.removeAllListeners("plotly_click");
    plot.on("plotly_click", (event) => {
      const point = event.points.find((p) => p.data.type === "heatmap");
      if (point) onClick({ [plane.across]: threeDigits(point.x), [plane.up]: threeDigits(point.y) });
    });
  });
}
