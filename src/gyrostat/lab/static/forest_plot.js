// The forest plot of a fit: the effect of every feature in every environment.

import { byId, escapeMarkup } from "./elements.js";
import { axis, colour, CONFIG, layout, plotly, seriesColour, SYMBOLS } from "./plot_style.js";

const LOOKS = { kept: { series: 2, text: "--holds" }, removed: { series: 1, text: "--fails" } };
const OTHER_LOOK = { series: 6, text: "--quiet" };

// A forest plot: a panel for each feature, a row for each environment.
export async function drawForest(fitted) {
  await plotly;
  const n = fitted.features.length, across = Math.min(n, Math.max(1, Math.floor(byId("forest").clientWidth / 230))), down = Math.ceil(n / across);
  const traces = [], axes = {}, titles = [], names = fitted.environments;
  fitted.features.forEach((f, k) => {
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
