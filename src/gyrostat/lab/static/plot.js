// The plot of the trajectories: a panel for each side, bands over seeds, predicted curves.

import { axis, colours, CONFIG, css, DASHES, faded, layout } from "./looks.js";

const plot = document.getElementById("plot");
export const shown = { begin: null, sides: {}, lines: [], number: 0 };

export function redraw() {
  if (!shown.begin) return null;
  const { view, sides } = shown.begin, narrow = plot.clientWidth < 560 && !view.together;
  plot.parentElement.classList.toggle("stacked", narrow);
  const panels = view.together ? 1 : sides.length, traces = [], marks = [], axes = {};
  for (let k = 0; k < panels; k++) {
    const from = k / panels + (k ? 0.04 : 0), to = (k + 1) / panels - (k < panels - 1 ? 0.04 : 0), tail = k ? String(k + 1) : "";
    const time = axis(narrow && k < panels - 1 ? "" : "step", { type: view.log_time ? "log" : "linear", ...(view.log_time ? {} : { tickformat: "d" }), nticks: view.together || narrow ? 8 : 5, automargin: "height", anchor: "y" + tail, domain: narrow ? [0, 1] : [from, to] });
    const up = axis("", { showticklabels: narrow || !k, type: view.log ? "log" : "linear", anchor: "x" + tail, rangemode: view.log ? "normal" : "tozero" });
    if (narrow) up.domain = [1 - (k + 1) / panels + (k < panels - 1 ? 0.07 : 0), 1 - k / panels - (k ? 0.09 : 0)];
    if (k && !narrow) up.matches = "y";
    axes["xaxis" + tail] = time;
    axes["yaxis" + tail] = up;
    if (!view.together) {
      const top = narrow ? up.domain[1] : 1;
      const short = plot.clientWidth / panels < 340 && !narrow; // two lines where one would run into the other panel
      marks.push({ text: `<b>${escape(sides[k].title).replace(short ? " (" : "\0", "<br>(")}</b>`, align: "left", x: narrow ? 0 : from, y: top, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 13 } });
    }
  }
  if (!view.log && !narrow) axes.yaxis.range = sharedRange();
  sides.forEach((side, k) => view.curves.forEach((curve, i) => traces.push(...band(side, curve, view.together ? k : i, view.together ? 0 : k))));
  for (const line of shown.lines) {
    const k = view.together ? 0 : sides.findIndex((side) => side.name === line.side);
    traces.push({ x: line.x, y: line.y, name: line.label, xaxis: name("x", k), yaxis: name("y", k), mode: "lines", legendgroup: line.label, showlegend: k === 0, line: { color: css("--ink"), width: 1.3, dash: "5px,3px" }, hoverinfo: "skip" });
  }
  const look = layout({ ...axes, annotations: marks, uirevision: view.title });
  Object.assign(look.margin, { l: view.log ? 52 : 40, t: view.together ? 32 : narrow ? 52 : 66 });
  look.title = { text: view.label, font: { size: 13, color: css("--quiet") }, x: 0, xref: "paper", y: 0.99, yanchor: "top" };
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
  const label = shown.begin.view.together ? side.title : curve.label, at = { xaxis: name("x", panel), yaxis: name("y", panel), mode: "lines", legendgroup: label };
  const positive = (values) => (shown.begin.view.log ? values.map((v) => (v > 0 ? v : null)) : values);
  const line = { color: colour, width: 2.2, dash: DASHES[look % 7] };
  return [...between(part.steps, positive(low), positive(high), { ...at, line: { width: 0, color: colour }, fillcolor: faded(colour, 0.17), hoverinfo: "skip", showlegend: false }),
    { ...at, x: part.steps, y: positive(middle), name: label, line, showlegend: panel === 0, hovertemplate: "%{y:.3g}" }];
}

// The area between two curves: one outline, which is drawn sooner, or two curves where one has a gap.
function between(x, low, high, look) {
  if ([...low, ...high].includes(null)) return [{ ...look, x, y: low }, { ...look, x, y: high, fill: "tonexty" }];
  return [{ ...look, x: [...x, ...x.toReversed()], y: [...high, ...low.toReversed()], fill: "toself" }];
}
