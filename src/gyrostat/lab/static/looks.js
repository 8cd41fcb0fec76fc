// Colours, dashes and axes of all plots, in light and dark.

const dark = matchMedia("(prefers-color-scheme: dark)");
const LIGHT = ["#0072B2", "#D55E00", "#00805F", "#B0528A", "#9A6A00", "#3A8FC4", "#6B6B6B"];
const DARK = ["#56B4E9", "#FF8A45", "#2CC79B", "#E48FBF", "#E6B035", "#8FD0F5", "#A8A8A8"];
export const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid"];
export const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "star"];

export const colours = () => (dark.matches ? DARK : LIGHT);
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const faded = (hex, share) => hex + Math.round(255 * share).toString(16).padStart(2, "0");
export const onLooks = (redraw) => dark.addEventListener("change", redraw);
export const CONFIG = { displayModeBar: false, responsive: true };

export function axis(title, more = {}) {
  return {
    title: { text: title, standoff: 8 }, gridcolor: css("--grid"), zerolinecolor: css("--rule"), tickfont: { size: 12 }, linecolor: css("--rule"), tickfont: { size: 12 },
    exponentformat: more.type === "log" ? "power" : "none", ...more,
  };
}

export function layout(more = {}) {
  return {
    paper_bgcolor: css("--paper"), plot_bgcolor: css("--paper"), font: { color: css("--ink"), family: "system-ui, sans-serif", size: 13 },
    margin: { l: 58, r: 14, t: 34, b: 84 }, hovermode: "x unified", hoverlabel: { bgcolor: css("--card"), font: { color: css("--ink") } },
    legend: { orientation: "h", yref: "container", y: 0.005, yanchor: "bottom", x: 0 }, ...more,
  };
}
