// Puts the page together: laboratories, presets, tabs, and what follows a change of a control.

import { buildControls } from "./controls.js";
import { buildCopyButton, byId } from "./elements.js";
import * as guidedTour from "./guided_tour.js";
import { defaults, labOf, readAddress, state, writeAddress } from "./page_state.js";
import * as phaseDiagram from "./phase_diagram.js";
import { onSchemeChange } from "./plot_style.js";
import * as stepByStep from "./step_by_step.js";
import { clearTheory } from "./theory_panel.js";
import * as trajectories from "./trajectories.js";
import { dim, download, redraw, shown } from "./trajectory_plot.js";
import * as yourData from "./your_data.js";

window.gyrostat = { latencies: trajectories.latencies, opening: trajectories.opening, shown, state }; // for tests and measurements

const STEPS_LAB = "environments"; // the laboratory that can be seen step by step
const REST = 600; // milliseconds that a slider must rest if its notches need programs of their own
let resting = 0;

function changed(name) {
  showLead();
  writeAddress();
  byId("preset").value = "";
  clearTimeout(resting);
  if (!shown.begin?.compiling_controls.includes(name)) return ask();
  trajectories.stop();
  dim("This slider needs a newly compiled program: it starts when the slider rests.");
  resting = setTimeout(ask, REST);
}

function ask() {
  if (state.tab !== "data") trajectories.ask();
  if (state.tab === "phase") phaseDiagram.ask(move);
  if (state.tab === "steps") stepByStep.ask();
}

// The lead of the laboratory, or what differs between a figure and its preset.
function showLead(note = "") {
  byId("lead").textContent = note || state.lab.lead;
}

function move(values) {
  Object.assign(state.values, values);
  rebuild();
  changed();
}

function rebuild() {
  buildControls(changed);
  showLead();
  showPlace();
  byId("tab-steps").hidden = state.lab.name !== STEPS_LAB;
  const view = state.lab.controls.find((c) => c.name === "view");
  byId("views").replaceChildren(...view.options.map((word) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: word, value: word });
    button.setAttribute("aria-pressed", String(word === state.values.view));
    button.addEventListener("click", () => { dim("Computing …"); move({ view: word }); });
    return button;
  }));
}

// A laboratory with its tabs and controls, or the user's own data.
function showPlace() {
  const data = state.tab === "data";
  for (const button of byId("labs").children) button.setAttribute("aria-current", String(!data && button.value === state.lab.name));
  byId("place-data").setAttribute("aria-current", String(data));
  for (const id of ["controls", "lab-lead", "preset-label", "to-controls"]) byId(id).hidden = data;
  byId("panel-data").hidden = !data;
}

function enter(lab, values = {}) {
  state.lab = lab;
  state.values = { ...defaults(lab), ...Object.fromEntries(Object.entries(values).map(([k, v]) => [k, String(v)])) };
  if (state.tab === "data" || (state.tab === "steps" && lab.name !== STEPS_LAB)) openTab("curves");
  dim("Computing …");
  clearTheory();
  rebuild();
  changed();
}

function openTab(tab) {
  state.tab = tab;
  writeAddress();
  for (const button of byId("tabs").children) {
    const mine = button.dataset.tab === tab;
    button.setAttribute("aria-selected", String(mine));
    button.tabIndex = mine ? 0 : -1;
    byId(button.getAttribute("aria-controls")).hidden = !mine;
  }
  byId("theory").hidden = tab !== "curves";
  showPlace();
  if (tab !== "phase") phaseDiagram.stop();
  if (tab !== "steps") stepByStep.stop();
  else stepByStep.ask();
  if (tab === "curves") { redraw(); if (shown.number === 0) trajectories.ask(); }
  if (tab === "phase") phaseDiagram.ask(move);
  if (tab === "data") { trajectories.stop(); yourData.open(); }
}

async function buildPresets() {
  const select = byId("preset");
  select.append(new Option("of a paper …", ""));
  const presets = await (await fetch("api/presets")).json();
  for (const lab of state.labs) {
    const group = Object.assign(document.createElement("optgroup"), { label: lab.title });
    for (const preset of presets[lab.name]) group.append(new Option(`${preset.name}: ${preset.title}`, `${lab.name} ${preset.name}`));
    select.append(group);
  }
  select.addEventListener("change", () => {
    const [name, figure] = select.value.split(" "), lab = labOf(name), chosen = select.value;
    if (!figure) return;
    const preset = presets[lab.name].find((p) => p.name === figure);
    enter(lab, preset.values);
    select.value = chosen;
    showLead(preset.note && `${preset.title}. ${preset.note}`);
  });
}

function moveBetweenTabs(event) {
  const tabs = [...byId("tabs").children].filter((tab) => !tab.hidden), at = tabs.indexOf(document.activeElement), by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (at < 0 || !by) return;
  const next = tabs[(at + by + tabs.length) % tabs.length];
  next.focus();
  openTab(next.dataset.tab);
}

async function main() {
  const about = await (await fetch("api/about")).json();
  state.labs = about.labs;
  byId("version").textContent = `gyrostat ${about.version}, on this machine only`;
  byId("labs").append(...about.labs.map((lab) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: lab.title, value: lab.name });
    button.addEventListener("click", () => enter(lab));
    return button;
  }));
  for (const id of ["python", "command"]) buildCopyButton(id);
  stepByStep.build();
  guidedTour.build((values, tab) => { openTab(tab); enter(labOf(STEPS_LAB), values); });
  yourData.build(about.examples);
  byId("place-data").addEventListener("click", () => openTab("data"));
  for (const button of byId("tabs").children) button.addEventListener("click", () => openTab(button.dataset.tab));
  byId("tabs").addEventListener("keydown", moveBetweenTabs);
  for (const kind of ["png", "svg", "csv"]) byId(kind).addEventListener("click", () => download(kind));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  const redrawAll = () => { redraw(); phaseDiagram.redraw(); yourData.redraw(); };
  onSchemeChange(redrawAll);
  let timer = 0;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(redrawAll, 150); });
  document.addEventListener("server-back", () => changed());
  addEventListener("popstate", () => { readAddress(); rebuild(); openTab(state.tab); trajectories.ask(); });
  readAddress();
  rebuild();
  openTab(state.tab);
  buildPresets();
}

main();
