// The errors of methods in environments left out, over those of least squares: the mean, and that of the worst environment.

import { byId } from "./elements.js";
import { axis, colour, CONFIG, layout, plotly, seriesColour, SYMBOLS } from "./plot_style.js";

const LOOKS = [6, 0]; // series of other methods and of ours

export async function drawComparison({ methods, ratios, titles, farthest }) {
  await plotly;
  const plot = byId("compare-plot"), narrow = plot.clientWidth < 560, names = methods.map(([name]) => name);
  const looks = names.map((name) => LOOKS[Number(name.startsWith("ours"))]), traces = [], axes = {}, annotations = [];
  Object.entries(titles).forEach(([error, title], k) => {
    const suffix = k ? "2" : "", { "": ratio, _low: low, _high: high } = ratios[error];
    const across = narrow ? [0, 1] : [k * 0.53, 0.47 + k * 0.53], up = narrow ? [k ? 0 : 0.56, k ? 0.44 : 1] : [0, 1];
    axes["xaxis" + suffix] = axis(narrow && !k ? "" : narrow ? "ratio of mean square errors" : "mean square error / that of least squares", { type: "log", domain: across, anchor: "y" + suffix, tickvals: [0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10], exponentformat: "none" });
    axes["yaxis" + suffix] = axis("", { type: "category", domain: up, anchor: "x" + suffix, autorange: "reversed", showticklabels: narrow || !k, automargin: true, categoryorder: "array", categoryarray: names });
    const inks = looks.map(seriesColour);
    names.forEach((name, i) => traces.push({
      x: [ratio[i]], y: [name], mode: "markers", showlegend: false, xaxis: "x" + suffix, yaxis: "y" + suffix, hovertemplate: `${name}: %{x:.3g}<extra></extra>`,
      marker: { color: inks[i], size: 9, symbol: SYMBOLS[looks[i]] },
      error_x: { type: "data", symmetric: false, array: [high[i] - ratio[i]], arrayminus: [ratio[i] - low[i]], color: inks[i], thickness: 1.6, width: 0 },
    }));
    traces.push({ x: [1, 1], y: [names[0], names.at(-1)], mode: "lines", showlegend: false, hoverinfo: "skip", xaxis: "x" + suffix, yaxis: "y" + suffix, line: { color: colour("--ink"), width: 1.2, dash: "5px,3px" } });
    annotations.push({ text: `<b>${title}</b>`, x: across[0], y: up[1], xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 13 } });
  });
  const height = (narrow ? 2 : 1) * (24 * names.length + 40) + 80;
  const cut = Object.values(ratios).some((ratio) => Object.values(ratio).flat().some((value) => value >= farthest));
  byId("compare-note").textContent = "Left of the line is better than least squares. Ours are blue circles." + (cut ? ` Ratios beyond ${farthest} are drawn at ${farthest}.` : "");
  Plotly.react(plot, traces, layout({ ...axes, annotations, height, margin: { l: 120, r: 14, t: 30, b: 48 }, hovermode: "closest" }), CONFIG);
}
