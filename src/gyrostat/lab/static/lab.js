// The laboratory. The address of the page is its state; every change of a control opens a stream of drawings of that state; and
// the server's drawings are plotly's own dictionaries, so that the page draws what a report and a file draw.

const byId = (id) => document.getElementById(id);
const about = JSON.parse(byId("about").textContent);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = matchMedia("(prefers-color-scheme: dark)");
const state = { lab: "", tab: "draw", values: {}, unknown: {} };
const latencies = []; // milliseconds from a change to its first drawing, and to the one of all runs
const MOST_WAITING = 400; // milliseconds after which a newer request may end one that has drawn nothing

let stream = null; // the open request
let answered = true; // whether it has drawn something
let asked = 0, changedAt = 0, waiting = 0, clock = 0, drawings = 0;
let shown = null; // the message that is drawn
window.gyrostat = { state, latencies, get shown() { return shown; } }; // for tests and measurements

const element = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });
const press = (group, value) => [...group.children].forEach((button) => button.setAttribute("aria-pressed", String(button.value === value)));

// -------------------------------------------------------------------------------------------------- the state

const controls = () => Object.values(about.labs[state.lab].groups).flat();

// What differs from the defaults, and what is in the address and unknown: the server says so.
function query() {
  const changes = controls().filter((c) => state.values[c.name] !== String(c.default)).map((c) => [c.name, state.values[c.name]]);
  return new URLSearchParams({ lab: state.lab, ...Object.fromEntries(changes), ...state.unknown });
}

function enter(lab, values = {}) {
  state.lab = lab in about.labs ? lab : Object.keys(about.labs)[0];
  state.values = Object.fromEntries(controls().map((c) => [c.name, String(values[c.name] ?? c.default)]));
  state.unknown = Object.fromEntries(Object.entries(values).filter(([name]) => !(name in state.values)));
  if (state.lab !== lab) state.unknown.lab = lab;
  byId("lead").textContent = about.labs[state.lab].lead;
  press(byId("labs"), state.lab);
  press(byId("tabs"), state.tab);
  document.body.classList.toggle("phase", state.tab === "phase");
  for (const id of ["theory", "views", "files"]) byId(id).hidden = state.tab === "phase";
  for (const id of ["headline", "tally", "sentences", "conditions", "python", "command"]) byId(id).replaceChildren();
  byId("panels").classList.add("stale");
  buildControls();
  changed();
}

function changed() {
  const address = query();
  for (const link of byId("files").children) {
    link.href = `curves.${link.textContent.toLowerCase()}?${address}`;
    link.download = "";
  }
  if (state.tab !== "draw") address.set("tab", state.tab);
  history.replaceState(null, "", `?${address}`);
  disableWhatDoesNotMatter();
  changedAt ||= performance.now();
  clearTimeout(waiting);
  waiting = 0;
  // A new request ends the one before it, so while a slider moves, each waits until something has been drawn.
  if (answered || performance.now() - asked > MOST_WAITING) ask();
  else waiting = setTimeout(changed, MOST_WAITING);
}

// ----------------------------------------------------------------------------------------------- the requests

function ask() {
  stream?.close();
  const opened = stream = new EventSource(`${state.tab}?${query()}`);
  asked = performance.now();
  answered = false;
  clearInterval(clock);
  clock = setInterval(sayThatItTakesLong, 1000);
  opened.onmessage = (event) => { if (opened === stream) receive(JSON.parse(event.data)); };
  opened.onerror = () => { if (opened === stream) { opened.close(); clearInterval(clock); byId("lost").hidden = false; } };
}

function sayThatItTakesLong() {
  if (answered) return clearInterval(clock);
  byId("panels").classList.add("stale");
  const seconds = Math.round((performance.now() - asked) / 1000);
  byId("status").textContent = `Computing for ${seconds} s. The first run of a new kind of setting is compiled, which takes some seconds.`;
}

function receive(message) {
  byId("lost").hidden = true;
  if (message.kind === "end") stream.close();
  else if (message.kind === "failed") refuse(message.text);
  else if (message.kind === "theory") showTheory(message);
  else if (message.kind === "sentences") byId("sentences").replaceChildren(...message.sentences.map((text) => element("li", text)));
  else if (message.kind !== "predicted") draw(message);
  else if (shown?.lab !== state.lab) draw(message); // better than nothing, or than another laboratory
}

// One sentence; the controls that it names are marked.
function refuse(text) {
  byId("refused").textContent = text;
  byId("refused").hidden = !text;
  for (const input of byId("controls").querySelectorAll("[name]")) input.setAttribute("aria-invalid", String(new RegExp(`\\b${input.name}\\b`).test(text)));
  if (!text) return;
  byId("panels").classList.add("stale");
  byId("status").textContent = "";
  finish();
}

// The request has been answered: the next one may be sent.
function finish() {
  answered = true;
  changedAt = 0;
  if (waiting) changed();
}

function showTheory({ headline, conditions, python, command }) {
  byId("headline").textContent = headline.replace(/\b([XFU]) ([XGU]ᵀ)/g, "$1\u00a0$2"); // not broken between two lines
  byId("python").textContent = python;
  byId("command").textContent = command;
  const holding = conditions.filter((c) => c.verdict === "holds").length;
  byId("tally").textContent = conditions.length ? `(${holding} of ${conditions.length} hold)` : "";
  byId("conditions").replaceChildren(...conditions.map((c) => {
    const item = element("li", "", { className: c.verdict, title: c.note });
    item.append(element("b", `${c.verdict === "holds" ? "✓" : "✗"} ${c.verdict}`), element("span", c.name));
    item.append(element("small", `${c.value} ${c.relation} ${c.bound} · ${c.source}`));
    return item;
  }));
}

// ------------------------------------------------------------------------------------------------ the drawings

const MARKS = { o: "●", s: "■", "^": "▲", D: "◆", v: "▼", P: "✚", X: "✖" };

async function draw(message) {
  refuse("");
  const since = changedAt, first = !answered && message.kind !== "predicted";
  shown = { ...message, lab: state.lab };
  const home = byId("panels");
  if (home.children.length !== message.panels.length) home.replaceChildren(); // a plot keeps its width
  while (home.children.length < message.panels.length) {
    home.append(element("div", "", { className: "panel" }));
    home.lastChild.append(element("h2"), element("div", "", { className: "plot", role: "img" }));
  }
  byId("ylabel").textContent = message.kind === "phase" ? message.note : message.panels[0].ylabel;
  await Promise.all(message.panels.map((panel, i) => drawPanel(home.children[i], panel)));
  showLegend(message.panels.flatMap((panel) => coloured(panel.entries)));
  if (message.kind === "predicted") return;
  home.classList.remove("stale");
  const passed = Math.round(performance.now() - since);
  if (first) {
    latencies.push({ first: passed });
    drawings += 1;
  }
  if (latencies.length && message.seeds === message.of) latencies.at(-1).whole ??= passed;
  showStatus(message, first ? `drawn ${passed} ms after the change` : "");
  if (first) finish();
}

function showStatus(message, time) {
  const counted = message.seeds < message.of ? `${message.seeds} of ${message.of} seeds so far` : `${message.seeds} seeds`;
  const diverged = Object.entries(message.diverged ?? {}).map(([side, count]) => `${count} of ${message.seeds} ${side} runs left the finite range`);
  const status = message.kind === "phase" ? [`${message.done} of ${message.of} cells, ${message.seeds} seeds each`, "click a cell to go there"]
    : [`${counted}: medians and quartiles`, ...diverged, time];
  byId("status").textContent = status.filter(Boolean).join(" · ");
  const whole = message.kind === "phase" ? message.done === message.of : message.seeds === message.of;
  Object.assign(byId("status").dataset, { kind: message.kind, whole, number: drawings });
}

// The data have the colours of a white page. On a dark one each is replaced by its equivalent with the same transparency.
function coloured(x) {
  if (!dark.matches || x === null) return x;
  if (typeof x === "string" && x.startsWith("#")) return (about.dark[x.slice(0, 7)] ?? x.slice(0, 7)) + x.slice(7);
  if (Array.isArray(x)) return typeof x[0] === "object" ? x.map(coloured) : x;
  return typeof x === "object" ? Object.fromEntries(Object.entries(x).map(([key, value]) => [key, coloured(value)])) : x;
}

async function drawPanel(box, panel) {
  const [title, plot] = box.children, { data, layout } = coloured(panel), heat = data.some((trace) => trace.type === "heatmap");
  title.textContent = panel.title;
  plot.setAttribute("aria-label", `${panel.title}: ${panel.ylabel} against ${panel.xlabel}`);
  const look = { gridcolor: colour("--grid"), zerolinecolor: colour("--line"), linecolor: colour("--line"), automargin: true, nticks: 6 };
  const axis = (own, text) => {
    const decades = own.type === "log" && own.range ? own.range[1] - own.range[0] : Infinity;
    return { ...look, exponentformat: own.type === "log" ? "power" : "none", ...own, ...(decades < 2 ? { dtick: "D2", tickformat: "~g" } : {}), title: { text, standoff: 6 } };
  };
  for (const trace of data.filter(({ type }) => type === "heatmap")) {
    trace.colorbar = { thickness: 12, outlinewidth: 0, title: { text: trace.meta.label, side: "right" } };
    trace.customdata = trace.meta.y.map((y) => trace.meta.x.map((x) => [x, y])); // centres of cells, which their texts name
  }
  await Plotly.react(plot, data, {
    ...layout, xaxis: axis(layout.xaxis, panel.xlabel), yaxis: axis(layout.yaxis, heat ? panel.ylabel : ""), showlegend: false, hovermode: heat ? "closest" : "x",
    margin: { l: 40, r: heat ? 80 : 16, t: 8, b: 40 }, paper_bgcolor: colour("--paper"), plot_bgcolor: colour(heat ? "--gap" : "--paper"),
    font: { family: "system-ui, sans-serif", size: 12, color: colour("--ink") }, hoverlabel: { bgcolor: colour("--soft"), font: { color: colour("--ink") } },
  }, { displayModeBar: false, responsive: true });
  plot.removeAllListeners("plotly_click");
  if (heat) plot.on("plotly_click", ({ points: [{ pointNumber: [i, j], data: { meta } }] }) => meta && go(meta.x[j], meta.y[i]));
}

// Moves the sliders to a cell of the phase diagram.
function go(x, y) {
  const rounded = (value) => String(Number(value.toPrecision(3)));
  enter(state.lab, { ...state.values, [shown.across]: rounded(x), [shown.up]: rounded(y) });
}

function showLegend(entries) {
  const once = [...new Map(entries.filter(({ swatch }) => !swatch.heat).map((entry) => [entry.label, entry])).values()];
  byId("legend").replaceChildren(...once.map(({ label, swatch }) => {
    const item = element("li"), sample = element("span", swatch.role === "measured" ? `${swatch.line ? "━" : ""}${MARKS[swatch.marker] ?? ""}` : "╍╍");
    sample.style.color = swatch.color;
    item.append(sample, " ", label);
    return item;
  }));
}

// ------------------------------------------------------------------------------------------------ the controls

function buildControls() {
  const sets = [];
  for (const [title, members] of Object.entries(about.labs[state.lab].groups)) {
    if (!title) continue;
    const set = element("fieldset");
    set.append(element("legend", title), ...members.map(buildControl));
    sets.push(set);
  }
  byId("controls").replaceChildren(...sets);
  const view = controls().find((control) => control.name === "view");
  byId("views").replaceChildren(...view.options.map((word) => element("button", word, { type: "button", value: word, onclick: () => set("view", word) })));
  press(byId("views"), state.values.view);
}

function set(name, value) {
  state.values[name] = value;
  state.unknown = {};
  byId("preset").value = "";
  press(byId("views"), state.values.view);
  changed();
}

function buildControl(control) {
  const { name, low, high } = control, row = element("div", "", { className: "control", title: control.help });
  const label = element("label", control.label, { htmlFor: `set-${name}` });
  if (control.symbol) label.append(element("i", control.symbol));
  row.append(label);
  if (control.kind === "choice") {
    const select = element("select", "", { id: `set-${name}`, name, onchange: () => set(name, select.value) });
    select.append(...control.options.map((option) => new Option(option)));
    select.value = state.values[name];
    row.classList.add("choice");
    row.append(select, element("small", "", { hidden: true }));
    return row;
  }
  // The slider has the scale of its values, or 400 places on a logarithmic one.
  const linear = control.scale === "linear", whole = control.kind === "whole";
  const placeOf = (value) => (linear ? value : 400 * Math.log(value / low) / Math.log(high / low));
  const valueAt = (place) => {
    const value = linear ? place.toPrecision(6) : (low * (high / low) ** (place / 400)).toPrecision(whole ? 2 : 3);
    return String(whole ? Math.round(Number(value)) : Number(value));
  };
  const box = element("input", "", { type: "number", id: `set-${name}`, name, min: low, max: high, step: "any", value: state.values[name] });
  const slider = element("input", "", { type: "range", id: `slide-${name}`, ariaLabel: `${control.label} ${control.symbol}`, min: linear ? low : 0, max: linear ? high : 400, step: linear ? control.step : 1 });
  slider.value = placeOf(Number(box.value));
  const show = () => { slider.ariaValueText = box.value = valueAt(Number(slider.value)); };
  // Where each place needs a program of its own, the slider is read when it is released.
  slider.oninput = control.compiles ? show : () => { show(); set(name, box.value); };
  if (control.compiles) slider.onchange = () => set(name, box.value);
  box.oninput = () => { slider.value = placeOf(Number(box.value)); set(name, box.value); };
  row.append(box, slider, element("small", "", { hidden: true }));
  return row;
}

function disableWhatDoesNotMatter() {
  for (const control of controls().filter((c) => c.needs.length)) {
    const [other, ...values] = control.needs, matters = values.includes(state.values[other]), row = byId(`set-${control.name}`).parentElement;
    for (const input of row.querySelectorAll("input, select")) {
      input.disabled = !matters;
      if (input.type === "range") input.hidden = !matters;
    }
    row.lastChild.hidden = matters;
    row.lastChild.textContent = `only with ${controls().find((c) => c.name === other).label}: ${values.join(" or ")}`;
  }
}

async function buildPresets() {
  const presets = await (await fetch("presets")).json(), select = byId("preset");
  for (const [lab, members] of Object.entries(presets)) {
    const group = element("optgroup", "", { label: about.labs[lab].title });
    group.append(...members.map((preset) => new Option(`${preset.name}: ${preset.title}`, `${lab} ${preset.name}`)));
    select.append(group);
  }
  select.onchange = () => {
    const [lab, name] = select.value.split(" "), preset = presets[lab]?.find((one) => one.name === name);
    if (!preset) return;
    enter(lab, preset.values);
    byId("lead").textContent = `${preset.title}. ${preset.note}`;
  };
}

byId("labs").append(...Object.entries(about.labs).map(([name, { title }]) => element("button", title, { type: "button", value: name, onclick: () => enter(name) })));
for (const button of byId("tabs").children) button.onclick = () => { state.tab = button.value; byId("panels").replaceChildren(); enter(state.lab, state.values); };
for (const button of document.querySelectorAll("[data-copies]")) {
  button.onclick = () => navigator.clipboard.writeText(byId(button.dataset.copies).textContent).then(() => { button.textContent = "Copied"; });
}
byId("controls").onsubmit = (event) => event.preventDefault();
dark.addEventListener("change", () => shown && draw(shown));
addEventListener("DOMContentLoaded", () => { // after plotly's script
  const { lab = Object.keys(about.labs)[0], tab, ...values } = Object.fromEntries(new URLSearchParams(location.search));
  state.tab = tab === "phase" ? "phase" : "draw";
  enter(lab, ["steps", "data"].includes(tab) ? { ...values, tab } : values); // of earlier versions: the server says what to use
  buildPresets();
});
