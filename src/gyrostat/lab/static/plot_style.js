// Colours, dashes, axes and layout of all plots, in light and dark. The colours are the CSS variables of the page.
// Plotly's script, which all plots need, is megabytes: it is loaded when the page has been painted without it.

const dark = matchMedia("(prefers-color-scheme: dark)");
export const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid"];
export const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "star"];
export const CONFIG = { displayModeBar: false, responsive: true };

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const seriesColour = (i) => colour(`--series-${i % DASHES.length}`);
export const onSchemeChange = (redraw) => dark.addEventListener("change", redraw);

// A computed colour is rgb(r, g, b).
export const faded = (rgb, share) => rgb.replace("rgb(", "rgba(").replace(")", `, ${share})`);

export function axis(title, more = {}) {
  const powers = more.type === "log" && !more.exponentformat; // plotly draws powers of ten a quarter larger
  return {
    title: { text: title, standoff: 8, font: { size: 13 } }, gridcolor: colour("--grid"), zerolinecolor: colour("--line"), linecolor: colour("--line"), tickfont: { size: powers ? 9.6 : 12 },
    exponentformat: powers ? "power" : "none", ...more,
  };
}

export function layout(more = {}) {
  return {
    paper_bgcolor: colour("--paper"), plot_bgcolor: colour("--paper"), font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 13 },
    margin: { l: 58, r: 14, t: 34, b: 84 }, hovermode: "x unified", hoverlabel: { bgcolor: colour("--soft"), font: { color: colour("--ink") } },
    legend: { orientation: "h", yref: "container", y: 0.005, yanchor: "bottom", x: 0 }, ...more,
  };
}

const painted = () => new Promise((resolve) => {
  if (document.hidden) resolve(); // nothing is painted
  else requestAnimationFrame(() => setTimeout(resolve));
});

// Resolves when plots can be drawn.
export const plotly = painted().then(() => new Promise((resolve) => {
  document.head.append(Object.assign(document.createElement("script"), { src: "plotly.js", onload: resolve }));
}));
