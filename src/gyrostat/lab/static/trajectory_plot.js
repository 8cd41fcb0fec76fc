// The plot of the trajectories: a panel for each side, medians with quartile bands, predicted curves; and its downloads.

import { byId, escapeMarkup, saveFile } from "./elements.js";
import { state } from "./page_state.js";
import { axis, colour, CONFIG, DASHES, faded, layout, seriesColour } from "./plot_style.js";

// What is drawn: the first message of a request, the curves of every side, the predicted curves, the request's number.
export const shown = { begin: null, sides: {}, predicted: [], number: 0 };

// Curves that are not those of the settings are faint, and `why` is written over them.
export function dim(why) {
  byId("plot").classList.add("stale");
  byId("pending").textContent = shown.begin || drawnByServer() ? `${why} (The faint curves are those of the previous setting.)` : why;
  byId("pending").hidden = false;
  byId("origin").hidden = true;
}

// The curves are those of the settings: computed before ("shipped") or just now ("live").
export function showOrigin(origin, sentence) {
  byId("plot").classList.remove("stale");
  byId("pending").hidden = true;
  Object.assign(byId("origin"), { hidden: false, textContent: sentence }).dataset.origin = origin;
}

// Whether the plot is still the one that the server wrote into the page.
export const drawnByServer = () => Boolean(byId("first-drawing"));

// Call it when `plotly` of plot_style.js has resolved.
export function redraw() {
  if (!shown.begin) return null;
  byId("first-drawing")?.remove();
  const plot = byId("plot"), { view, sides } = shown.begin, stacked = plot.clientWidth < 560 && !view.together;
  plot.parentElement.classList.toggle("stacked", stacked);
  const panels = view.together ? 1 : sides.length, traces = [], titles = [], axes = {};
  for (let k = 0; k < panels; k++) {
    const from = k / panels + (k ? 0.04 : 0), to = (k + 1) / panels - (k < panels - 1 ? 0.04 : 0), suffix = k ? String(k + 1) : "";
    const time = axis(stacked && k < panels - 1 ? "" : "step", { type: view.log_time ? "log" : "linear", ...(view.log_time ? {} : { tickformat: "d" }), nticks: view.together || stacked ? 8 : 5, automargin: "height", anchor: "y" + suffix, domain: stacked ? [0, 1] : [from, to] });
    const up = axis("", { showticklabels: stacked || !k, type: view.log ? "log" : "linear", anchor: "x" + suffix, rangemode: view.log ? "normal" : "tozero" });
    if (stacked) up.domain = [1 - (k + 1) / panels + (k < panels - 1 ? 0.07 : 0), 1 - k / panels - (k ? 0.09 : 0)];
    if (k) up.matches = "y"; // so that they can be compared
    axes["xaxis" + suffix] = time;
    axes["yaxis" + suffix] = up;
    if (!view.together) {
      const twoLines = plot.clientWidth / panels < 340 && !stacked; // one line would run into the other panel
      const title = escapeMarkup(sides[k].title).replace(twoLines ? " (" : "\0", "<br>(");
      titles.push({ text: `<b>${title}</b>`, align: "left", x: stacked ? 0 : from, y: stacked ? up.domain[1] : 1, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 13 } });
    }
  }
  if (!view.log) axes.yaxis.range = sharedRange();
  sides.forEach((side, k) => view.curves.forEach((curve, i) => traces.push(...band(side, curve, view.together ? k : i, view.together ? 0 : k))));
  for (const line of shown.predicted) {
    const k = view.together ? 0 : sides.findIndex((side) => side.name === line.side);
    traces.push({ x: line.x, y: line.y, name: line.label, ...axesOf(k), mode: "lines", legendgroup: line.label, showlegend: k === 0, line: { color: colour("--ink"), width: 1.3, dash: "5px,3px" }, hoverinfo: "skip" });
  }
  const style = layout({ ...axes, annotations: titles, uirevision: view.title });
  Object.assign(style.margin, { r: 22, l: view.log ? 52 : 40, t: view.together ? 32 : stacked ? 52 : 66 });
  style.title = { text: view.label, font: { size: 13, color: colour("--quiet") }, x: 0, xref: "paper", y: 0.99, yanchor: "top" };
  return Plotly.react(plot, traces, style, CONFIG);
}

const axesOf = (panel) => ({ xaxis: "x" + (panel ? String(panel + 1) : ""), yaxis: "y" + (panel ? String(panel + 1) : "") });

// One upper end for all sides, so that they can be compared. Curves that explode are cut off at three times the median.
function sharedRange() {
  let top = 0;
  for (const side of Object.values(shown.sides)) for (const curve of Object.values(side.curves)) {
    const middle = Math.max(...curve.middle.map((v) => v ?? 0)), high = Math.max(...curve.high.map((v) => v ?? 0));
    top = Math.max(top, Math.min(high, 3 * middle), Math.min(middle, 50));
  }
  return [0, 1.06 * (top || 1)];
}

function band(side, curve, look, panel) {
  const { steps, curves } = shown.sides[side.name], { low, middle, high } = curves[curve.key], ink = seriesColour(look);
  const { together, log } = shown.begin.view, label = together ? side.title : curve.label;
  const shared = { ...axesOf(panel), mode: "lines", legendgroup: label };
  const positive = (values) => (log ? values.map((v) => (v > 0 ? v : null)) : values);
  const area = { ...shared, line: { width: 0, color: ink }, fillcolor: faded(ink, 0.17), hoverinfo: "skip", showlegend: false };
  const line = { color: ink, width: 2.2, dash: DASHES[look % DASHES.length] };
  return [...between(steps, positive(low), positive(high), area),
    { ...shared, x: steps, y: positive(middle), name: label, line, showlegend: panel === 0, hovertemplate: "%{y:.3g}" }];
}

// The area between two curves: one outline, which is drawn faster, or two curves if one of them has a gap.
function between(x, low, high, look) {
  if ([...low, ...high].includes(null)) return [{ ...look, x, y: low }, { ...look, x, y: high, fill: "tonexty" }];
  return [{ ...look, x: [...x, ...x.toReversed()], y: [...high, ...low.toReversed()], fill: "toself" }];
}

// Downloads what is drawn as a picture ("png", "svg") or a table ("csv").
export async function download(kind) {
  const file = `gyrostat-${state.lab.name}-${state.values.view.replace(/\W+/g, "-")}`;
  if (kind !== "csv") return Plotly.downloadImage("plot", { format: kind, filename: file, width: 1100, height: 560, scale: kind === "png" ? 2 : 1 });
  const rows = ["side,curve,step,low,median,high"];
  for (const side of Object.values(shown.sides)) for (const [key, curve] of Object.entries(side.curves))
    side.steps.forEach((t, i) => rows.push([side.side, key, t, curve.low[i] ?? "", curve.middle[i] ?? "", curve.high[i] ?? ""].join(",")));
  saveFile(rows.join("\n") + "\n", file + ".csv", "text/csv");
}
