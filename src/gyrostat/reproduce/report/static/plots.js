// Plotly, unpacked when the first plot is drawn, so that the page is there before it.
let unpacking = null;
async function unpack() {
  const letters = atob(document.getElementById("plotly").textContent), packed = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}
const plotly = () => (unpacking ??= unpack());

// The plots: drawn when they come near the screen, drawn again when the colours change, resized with the page.
const dark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

const numbers = new WeakMap(); // from a figure to the data of its panels
function panels(figure) {
  if (!numbers.has(figure)) numbers.set(figure, JSON.parse(figure.querySelector("script.drawing").textContent));
  return numbers.get(figure);
}
function specOf(plot) {
  const figure = plot.closest(".figure");
  return panels(figure)[all(".plot", figure).indexOf(plot)];
}

// The data have the colours of a white page. On a dark page each is replaced by its equivalent with the same transparency.
function recoloured(x) {
  if (typeof x === "string" && x[0] === "#") return (ON_DARK_PAGES[x.slice(0, 7)] ?? x.slice(0, 7)) + x.slice(7);
  if (Array.isArray(x)) return typeof x[0] === "object" && x[0] !== null && !Array.isArray(x[0]) ? x.map(recoloured) : x;
  if (x === null || typeof x !== "object") return x;
  return Object.fromEntries(Object.entries(x).map(([key, value]) => [key, recoloured(value)]));
}

function axis(given, upright) {
  const look = {
    gridcolor: colour("--grid"), linecolor: colour("--edge"), zerolinecolor: colour("--grid"), showline: true, ticks: "outside",
    tickcolor: colour("--edge"), ticklen: 4, automargin: true, nticks: upright ? 7 : 6, showgrid: given.type !== "category" || upright,
  };
  // Plotly writes powers a quarter larger than other ticks.
  const powers = given.type === "log" ? { exponentformat: "power", showexponent: "all", tickfont: { size: 10 } } : {};
  return { ...look, ...powers, ...structuredClone(given) };
}

function layout(spec) {
  const heat = spec.data.some((trace) => trace.type === "heatmap");
  const touch = matchMedia("(pointer: coarse)").matches;
  return {
    ...spec.layout,
    xaxis: axis(spec.layout.xaxis, false), yaxis: axis(spec.layout.yaxis, true),
    shapes: structuredClone(dark() ? recoloured(spec.layout.shapes ?? []) : spec.layout.shapes ?? []),
    // Without a pointer to hover with, plotly's buttons are always there: above the curves, not over them.
    autosize: true, height: (spec.layout.height ?? 300) + (touch ? 26 : 0), margin: { l: 46, r: heat ? 6 : 12, t: touch ? 34 : 8, b: 30 }, showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: heat ? colour("--gap") : "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: colour("--ink") },
    hoverlabel: { bgcolor: colour("--paper"), bordercolor: colour("--edge"), font: { color: colour("--ink"), size: 12 }, align: "left" },
    hovermode: "closest", dragmode: touch ? false : "zoom", // a finger on a plot scrolls the page
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--quiet"), activecolor: colour("--link") },
    annotations: [], uirevision: "kept",
  };
}

function traces(spec) {
  return (dark() ? recoloured(spec.data) : spec.data).map((trace) => {
    if (trace.type !== "heatmap") return { ...trace };
    const centres = trace.meta.y.map((y) => trace.meta.x.map((x) => [x, y]));
    return { ...trace, customdata: centres, colorbar: { thickness: 12, outlinewidth: 0, len: 1, tickfont: { size: 11 } } };
  });
}

// Numbers to label on a log axis of less than two decades, as in the files; none if it is too short for them.
function shortAxisTicks(range) {
  const [low, high] = [Math.min(...range), Math.max(...range)];
  for (const multiples of [[1, 2, 5], [1, 1.5, 2, 3, 5, 7]]) {
    const found = [];
    for (let e = Math.floor(low); e <= high; e++) found.push(...multiples.map((m) => [Number(`${m}e${e}`), m, e]));
    const inside = found.filter(([value]) => low <= Math.log10(value) && Math.log10(value) <= high);
    if (inside.length > 1) return inside;
  }
  return [];
}

// All labels of an axis alike: plain numbers, or powers of ten if one of them is very small or large.
function tickTexts(found) {
  if (found.every(([value]) => value >= 1e-3 && value < 1e6)) return found.map(([value]) => String(value));
  return found.map(([, m, e]) => `${m === 1 ? "" : `${m}·`}10<sup>${String(e).replace("-", "−")}</sup>`);
}

// Ticks of a log axis as in the files: decades; on axes of less than two decades also numbers between them.
function ticks(plot) {
  const update = {};
  for (const name of ["xaxis", "yaxis"]) {
    const { type, range } = plot._fullLayout[name];
    if (type !== "log") continue;
    const decades = Math.abs(range[1] - range[0]), found = decades < 2 ? shortAxisTicks(range) : [];
    const dtick = decades < 2 ? "D1" : decades < 7 ? 1 : null, wanted = found.length ? String(found.map(([value]) => value)) : String(dtick);
    if (wanted === plot.dataset[`${name}Ticks`]) continue; // compared with what was set: otherwise this would repeat without end
    plot.dataset[`${name}Ticks`] = wanted;
    Object.assign(update, {
      [`${name}.tickmode`]: found.length ? "array" : null, [`${name}.tickvals`]: found.length ? found.map(([value]) => value) : null, [`${name}.ticktext`]: found.length ? tickTexts(found) : null,
      [`${name}.dtick`]: found.length ? null : dtick, [`${name}.tickformat`]: decades < 2 ? "~g" : "", [`${name}.tickfont.size`]: decades < 2 ? 12 : 10,
    });
  }
  if (Object.keys(update).length) return Plotly.relayout(plot, update);
}

const CONFIG = {
  displaylogo: false, displayModeBar: "hover", showTips: false, doubleClick: "reset",
  modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "autoScale2d"],
};

const drawn = new Set();
const sizes = new ResizeObserver((changes) => {
  for (const { target } of changes) if (target.offsetWidth && drawn.has(target)) Plotly.Plots.resize(target);
});

function scene(plot) { // without the series that the legend hides
  const spec = specOf(plot);
  const data = traces(spec), around = layout(spec);
  for (const button of all(".legend button[aria-pressed=false]", plot.closest(".panel"))) {
    for (const i of indices(button, "traces")) data[i].visible = false;
    for (const i of indices(button, "shapes")) around.shapes[i].visible = false;
  }
  return [data, around];
}

async function draw(plot) {
  try {
    await plotly();
    await Plotly.react(plot, ...scene(plot), CONFIG);
    delete plot.dataset.xaxisTicks;
    delete plot.dataset.yaxisTicks;
    await ticks(plot);
    if (!drawn.has(plot)) {
      sizes.observe(plot);
      plot.on("plotly_relayout", () => ticks(plot));
    }
    drawn.add(plot);
    plot.dataset.drawn = dark() ? "dark" : "light";
  } catch (error) {
    plot.closest(".figure").classList.add("broken"); // the still picture is shown instead
    throw error;
  }
}

const indices = (button, kind) => button.dataset[kind].split(" ").filter(Boolean).map(Number);

// One after the other, those on the screen first: a plot can be used before the next one is begun.
const waiting = new Set();
let drawing = false;
const onScreen = (plot) => { const { top, bottom } = plot.getBoundingClientRect(); return bottom > 0 && top < innerHeight; };
async function drawWaiting() {
  if (drawing) return;
  drawing = true;
  try {
    while (waiting.size) {
      const next = [...waiting].find(onScreen) ?? waiting.values().next().value;
      waiting.delete(next);
      await draw(next).catch(reportError); // the others are drawn all the same
      await new Promise((resolve) => setTimeout(resolve)); // what the reader does comes first
    }
  } finally {
    drawing = false;
  }
}

const near = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    waiting.add(target);
  }
  drawWaiting();
}, { rootMargin: "500px" });
all(".plot").forEach((plot) => near.observe(plot));

// The theme: chosen by the reader, or by the system.
const redraw = () => drawn.forEach(draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
for (const input of all("input[name=theme]")) {
  input.checked = input.value === (document.documentElement.dataset.theme ?? "auto");
  input.addEventListener("change", () => {
    if (input.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = input.value;
    try { localStorage.setItem("gyrostat-theme", input.value); } catch { /* not remembered, but applied */ }
    redraw();
  });
}

// The legend hides and shows series.
document.addEventListener("click", (event) => {
  const button = event.target.closest(".legend button");
  if (!button) return;
  const visible = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", visible);
  const plot = button.closest(".panel").querySelector(".plot");
  if (!drawn.has(plot)) return;
  const shapes = Object.fromEntries(indices(button, "shapes").map((i) => [`shapes[${i}].visible`, visible]));
  Plotly.update(plot, {}, shapes);
  if (indices(button, "traces").length) Plotly.restyle(plot, { visible }, indices(button, "traces"));
});
