// The phase diagram around the current point: cells are drawn as they come, and clicking one moves the sliders there.

import { axis, CONFIG, css, layout } from "./looks.js";
import { Refused, stream } from "./net.js";
import { state } from "./state.js";

const plot = document.getElementById("phase-plot"), status = document.getElementById("phase-status"), refused = document.getElementById("phase-refused");
let number = 0, abort = null, plane = null, cells = null, timer = null, clicked = null;
const PAUSE = 400;

export function ask(move) {
  stop();
  clicked = move;
  abort = new AbortController();
  const mine = abort;
  refused.hidden = true;
  status.textContent = "Waiting for the first cells …";
  stream("api/phase", { lab: state.lab.name, number: ++number, setting: { ...state.values } }, (message) => { if (abort === mine) hear(message); }, mine.signal)
    .catch((error) => {
      if (!(error instanceof Refused)) throw error;
      refused.textContent = error.message;
      refused.hidden = false;
      status.textContent = "";
    });
}

export function stop() {
  abort?.abort();
  abort = plane = null;
  clearTimeout(timer);
  timer = null;
}

function hear(message) {
  if (message.kind === "plane") {
    plane = message;
    cells = plane.y.map(() => plane.x.map(() => null));
    document.getElementById("phase-note").textContent = plane.note;
  } else if (message.kind === "cell") {
    cells[message.i][message.j] = message.value;
    status.textContent = message.done < message.of ? `${message.done} of ${message.of} cells` : `All ${message.of} cells, 8 seeds each`;
    status.dataset.done = message.done;
  }
  // Not with every cell: a click that falls into a drawing is lost.
  timer ??= setTimeout(redraw, message.kind === "plane" ? 0 : PAUSE);
}

const control = (name) => state.lab.controls.find((c) => c.name === name);
const title = (name) => `${control(name).label} ${control(name).symbol}`;
const ticks = (log) => ({ showgrid: false, ...(log ? { dtick: "D2", tickformat: "~g", exponentformat: "none" } : {}) });
const shownNumber = (x) => Number(x.toPrecision(3));

export function redraw() {
  clearTimeout(timer);
  timer = null;
  if (!plane) return;
  const z = plane.log_value ? cells.map((row) => row.map((v) => (v === null ? null : Math.log10(Math.max(v, 1e-30))))) : cells;
  const range = plane.log_value ? {} : { zmin: 0, zmax: 1 };
  const heat = {
    type: "heatmap", x: plane.x, y: plane.y, z, ...range, colorscale: "Cividis", hoverongaps: false, xgap: 1, ygap: 1,
    colorbar: { title: { text: plane.log_value ? `log₁₀ ${plane.label}` : plane.label, side: "right" }, thickness: 14 },
    hovertemplate: `${control(plane.across).symbol} = %{x:.3g}<br>${control(plane.up).symbol} = %{y:.3g}<br>${plane.label}: %{z:.2f}<extra></extra>`,
  };
  const here = {
    x: [Number(state.values[plane.across])], y: [Number(state.values[plane.up])], mode: "markers", name: "you are here", hoverinfo: "skip",
    marker: { symbol: "circle-open", size: 15, color: "#ffffff", line: { width: 3, color: "#ffffff" } },
  };
  const traces = [heat];
  if (plane.boundary) {
    const [name, x, y] = plane.boundary;
    for (const [colour, width, show] of [["#000000", 5, false], ["#ffffff", 2, true]])
      traces.push({ x, y, mode: "lines", name, showlegend: show, line: { color: colour, width, dash: show ? "6px,4px" : "solid" }, hoverinfo: "skip" });
  }
  traces.push({ ...here, showlegend: false, marker: { ...here.marker, color: "#000", size: 18, line: { width: 6, color: "#000" } } }, here);
  const ends = (values, log) => {
    const [a, b] = [values[0], values.at(-1)], n = values.length - 1;
    if (log) { const half = Math.log10(b / a) / n / 2; return [Math.log10(a) - half, Math.log10(b) + half]; }
    return [a - (b - a) / n / 2, b + (b - a) / n / 2];
  };
  const x = axis(title(plane.across), { type: plane.log_x ? "log" : "linear", range: ends(plane.x, plane.log_x), automargin: "height", ...ticks(plane.log_x) });
  const y = axis(title(plane.up), { type: plane.log_y ? "log" : "linear", range: ends(plane.y, plane.log_y), ...ticks(plane.log_y) });
  const look = layout({ xaxis: x, yaxis: y, hovermode: "closest", title: { text: plot.clientWidth < 560 ? plane.title.replace(" (", "<br>(") : plane.title, font: { size: 14 }, x: 0, xref: "paper" } });
  look.margin.t = plot.clientWidth < 560 ? 56 : 34;
  look.legend = { ...look.legend, bgcolor: "#3b4048", font: { color: "#ffffff" } };
  Plotly.react(plot, traces, { ...look, plot_bgcolor: css("--card") }, CONFIG).then(() => {
    plot.removeAllListeners("plotly_click");
    plot.on("plotly_click", (event) => {
      const point = event.points.find((p) => p.data.type === "heatmap");
      if (point) clicked({ [plane.across]: String(shownNumber(point.x)), [plane.up]: String(shownNumber(point.y)) });
    });
  });
}
