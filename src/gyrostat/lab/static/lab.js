// The laboratory. The form is the state and the address is its text. Every change opens a stream of drawings of the state,
// which are plotly's own dictionaries, made by the server: the page draws what a report and a file draw.

const byId = (id) => document.getElementById(id);
const form = byId("controls"), panels = byId("panels"), status = byId("status"), preset = byId("preset");
const DEFAULTS = JSON.parse(form.dataset.defaults), ON_DARK = JSON.parse(document.documentElement.dataset.onDark);
const MOST_WAITING = 400; // milliseconds after which a newer request may end one that has drawn nothing
const MARKS = { o: "●", s: "■", "^": "▲", D: "◆", v: "▼", P: "✚", X: "✖" };
const dark = matchMedia("(prefers-color-scheme: dark)");
const plotlyIsThere = new Promise((ready) => byId("plotly").addEventListener("load", ready));

let stream = null, answered = true; // the open request, and whether it has drawn something
let asked = 0, waiting = 0, clock = 0, drawings = 0;
let shown = null, offered = null; // the message that is drawn, and the presets
window.gyrostat = { get shown() { return shown; } }; // for tests

const element = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });

// ------------------------------------------------------------------------------------------------ the controls

// What differs from the defaults.
function stateOfForm() {
  return new URLSearchParams([...new FormData(form)].filter(([name, value]) => value !== DEFAULTS[name]));
}

function changed(state) {
  for (const row of form.querySelectorAll("[data-needs]")) {
    const matters = row.dataset.values.split("|").includes(form.elements[row.dataset.needs].value);
    for (const input of row.querySelectorAll("[id]")) input.disabled = !matters;
  }
  history.replaceState(null, "", `?${state}`);
  for (const link of byId("files").children) link.href = `curves.${link.textContent.toLowerCase()}?${state}`;
  clearTimeout(waiting);
  waiting = 0;
  // A new request ends the one before it, so while a slider moves, each waits until something has been drawn.
  if (answered || performance.now() - asked > MOST_WAITING) ask(state);
  else waiting = setTimeout(changed, MOST_WAITING, state);
}

const boxOf = (slider) => byId(slider.id.replace("slide", "set"));

// A slider is as long as its values, or as their logarithms; then data-log has the number of digits.
function placeSlider(slider) {
  slider.ariaValueText = boxOf(slider).value;
  slider.value = slider.dataset.log ? Math.log10(boxOf(slider).value) : boxOf(slider).value;
}

document.addEventListener("input", ({ target: { form: owner, type, dataset, value }, target }) => {
  if (owner !== form) return;
  if (type === "range") boxOf(target).value = dataset.log ? Number((10 ** value).toPrecision(dataset.log)) : value;
  form.querySelectorAll("[type=range]").forEach(placeSlider);
  preset.value = "";
  // Where each place needs a program of its own, the slider is read when it is released.
  if (!("compiles" in dataset)) changed(stateOfForm());
});
form.onchange = ({ target }) => { if ("compiles" in target.dataset) changed(stateOfForm()); };
form.onsubmit = (event) => event.preventDefault();

// Not before something is drawn, because the papers take a while to import.
async function offerPresets() {
  const labs = await (await fetch("presets")).json(), name = new URLSearchParams(location.search).get("figure");
  for (const [label, members] of Object.entries(labs)) {
    const group = element("optgroup", "", { label });
    group.append(...members.map(([name, title, state]) => element("option", `${name}: ${title}`, { value: name, state })));
    preset.append(group);
  }
  preset.value = name ?? "";
  preset.onchange = () => { location.search = preset.selectedOptions[0].state ?? ""; };
}

// ------------------------------------------------------------------------------------------------ the requests

function ask(state) {
  stream?.close();
  stream = new EventSource(`${form.elements.tab.value}?${state}`);
  answered = false;
  asked = performance.now();
  clearInterval(clock);
  clock = setInterval(sayThatItTakesLong, 1000);
  stream.onmessage = (event) => receive(JSON.parse(event.data));
  stream.onerror = () => {
    stream.close();
    clearInterval(clock);
    byId("lost").hidden = false;
  };
}

function sayThatItTakesLong() {
  if (answered) return clearInterval(clock);
  panels.classList.toggle("stale", shown?.kind !== "predicted");
  const seconds = Math.round((performance.now() - asked) / 1000);
  status.textContent = `Computing for ${seconds} s: the first run of a new kind of setting is compiled, which takes a while.`;
}

function receive(message) {
  byId("lost").hidden = true;
  if (message.kind === "end") stream.close();
  else if (message.kind === "failed") refuse(message.text);
  else if (message.kind === "theory") showTheory(message);
  else if (message.kind === "sentences") byId("sentences").replaceChildren(...message.sentences.map((s) => element("li", s)));
  else if (message.kind !== "predicted" || shown?.kind !== "curves") draw(message);
}

// One sentence; the controls that it names are marked.
function refuse(text) {
  byId("refused").textContent = text;
  byId("refused").hidden = !text;
  for (const input of form.elements) input.ariaInvalid = input.name !== "" && new RegExp(`\\b${input.name}\\b`).test(text);
  if (!text) return;
  panels.classList.add("stale");
  status.textContent = "";
  finish();
}

// The request has been answered: the next one may be sent.
function finish() {
  answered = true;
  if (waiting) changed(stateOfForm());
  offered ??= offerPresets();
}

function showTheory({ headline, conditions, python, command }) {
  for (const [id, text] of Object.entries({ headline, python, command })) byId(id).textContent = text;
  const holding = conditions.filter(({ verdict }) => verdict === "holds").length;
  byId("tally").textContent = conditions.length ? `(${holding} of ${conditions.length} hold)` : "";
  byId("conditions").replaceChildren(...conditions.map(({ verdict, name, note, value, relation, bound, source }) => {
    const item = element("li", "", { className: verdict, title: note }), sign = verdict === "holds" ? "✓" : "✗";
    item.append(element("b", `${sign} ${verdict}`), element("span", name));
    item.append(element("small", `${value} ${relation} ${bound} · ${source}`));
    return item;
  }));
}

// ------------------------------------------------------------------------------------------------ the drawings

async function draw(message) {
  refuse("");
  const first = !answered && message.kind !== "predicted";
  // A plot keeps its width: where there are more or fewer, or wider ones, they are made anew.
  if (panels.children.length !== message.panels.length || (shown?.kind === "phase") !== (message.kind === "phase")) {
    panels.replaceChildren(...message.panels.map(() => element("div", "", { className: "panel" })));
    for (const box of panels.children) box.append(element("h2"), element("div", "", { className: "plot", role: "img" }));
  }
  shown = message;
  message.panels.forEach(({ title, description }, i) => {
    panels.children[i].firstChild.textContent = title;
    panels.children[i].lastChild.ariaLabel = description;
  });
  byId("note").textContent = message.note;
  status.textContent = message.status;
  await plotlyIsThere;
  if (shown !== message) return; // a later one came while plotly was loaded
  const drawn = coloured(message.panels);
  await Promise.all(drawn.map(({ data, layout }, i) => drawPanel(panels.children[i].lastChild, data, layout)));
  showLegend(drawn.flatMap(({ entries }) => entries));
  panels.classList.remove("stale");
  drawings += first;
  Object.assign(status.dataset, { kind: message.kind, whole: message.whole, number: drawings });
  if (first) finish();
}

async function drawPanel(plot, data, layout) {
  await Plotly.react(plot, data, layout, { displayModeBar: false, responsive: true });
  plot.removeAllListeners("plotly_click");
  plot.on("plotly_click", ({ points: [{ pointNumber: [i, j] = [], data: { meta } }] }) => {
    if (!shown.axes || !meta.x) return; // only cells of the phase diagram can be gone to
    const [across, up] = shown.axes.map((name) => form.elements[name]);
    [across.value, up.value] = [meta.x[j], meta.y[i]].map((value) => Number(value.toPrecision(3)));
    up.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

// The data have the colours of a white page. On a dark one each is replaced by its equivalent with the same transparency.
function coloured(x) {
  if (!dark.matches || x === null) return x;
  if (typeof x === "string" && x.startsWith("#")) return (ON_DARK[x.slice(0, 7)] ?? x.slice(0, 7)) + x.slice(7);
  if (Array.isArray(x)) return typeof x[0] === "object" ? x.map(coloured) : x;
  return typeof x === "object" ? Object.fromEntries(Object.entries(x).map(([key, value]) => [key, coloured(value)])) : x;
}

function showLegend(entries) {
  const once = new Map(entries.filter(({ swatch }) => !swatch.heat).map((entry) => [entry.label, entry]));
  byId("legend").replaceChildren(...[...once.values()].map(({ label, swatch: { role, line, marker, color } }) => {
    const measured = (line ? "━" : "") + (MARKS[marker] ?? "");
    const item = element("li"), sample = element("span", role === "measured" ? measured : "╍╍");
    sample.style.color = color;
    item.append(sample, ` ${label}`);
    return item;
  }));
}

for (const button of byId("theory").querySelectorAll("button")) {
  button.onclick = () => navigator.clipboard.writeText(byId(button.value).textContent).then(() => button.append(" ✓"));
}
dark.addEventListener("change", () => shown && draw(shown));
form.querySelectorAll("[type=range]").forEach(placeSlider);
changed(new URLSearchParams(location.search)); // as it came: what cannot be read is named by the server
