// Puts the page together: laboratories, presets, tabs, and what a change sets off.

import { buildControls } from "./controls.js";
import * as curves from "./curves.js";
import { onLooks } from "./looks.js";
import * as phase from "./phase.js";
import { redraw, shown } from "./plot.js";
import { save } from "./saving.js";
import { defaults, labOf, readAddress, state, writeAddress } from "./state.js";
import * as table from "./table.js";
import { copyButtons } from "./theory.js";

const $ = (id) => document.getElementById(id);
window.gyrostat = { latencies: curves.latencies, shown, state };

function changed() {
  writeAddress();
  if (state.tab !== "data") curves.ask();
  if (state.tab === "phase") phase.ask(move);
  $("preset").value = "";
}

function move(values) {
  Object.assign(state.values, values);
  rebuild();
  changed();
}

function rebuild() {
  buildControls(changed);
  $("lead").textContent = state.lab.lead;
  for (const button of $("labs").children) button.setAttribute("aria-current", String(button.value === state.lab.name));
  const view = state.lab.controls.find((c) => c.name === "view");
  $("views").replaceChildren(...view.options.map((word) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: word, value: word });
    button.setAttribute("aria-pressed", String(word === state.values.view));
    button.addEventListener("click", () => move({ view: word }));
    return button;
  }));
}

function enter(lab, values = {}) {
  state.lab = lab;
  state.values = { ...defaults(lab), ...Object.fromEntries(Object.entries(values).map(([k, v]) => [k, String(v)])) };
  if (state.tab === "data") openTab("curves");
  rebuild();
  changed();
}

function openTab(tab) {
  state.tab = tab;
  writeAddress();
  for (const button of $("tabs").children) {
    const mine = button.dataset.tab === tab;
    button.setAttribute("aria-selected", String(mine));
    button.tabIndex = mine ? 0 : -1;
    $(button.getAttribute("aria-controls")).hidden = !mine;
  }
  $("theory").hidden = tab !== "curves";
  for (const button of $("labs").children) button.setAttribute("aria-current", String(tab !== "data" && button.value === state.lab.name));
  $("controls").hidden = $("lead").hidden = tab === "data";
  $("data-lead").hidden = tab !== "data";
  if (tab !== "phase") phase.stop();
  if (tab === "curves") { redraw(); if (shown.number === 0) curves.ask(); }
  if (tab === "phase") phase.ask(move);
  if (tab === "data") { curves.stop(); table.open(); }
}

function presets() {
  const select = $("preset");
  select.append(new Option("choose a setting of a paper", ""));
  for (const lab of state.labs) {
    const group = Object.assign(document.createElement("optgroup"), { label: lab.title });
    for (const preset of lab.presets) group.append(new Option(`${preset.name}: ${preset.title}`, `${lab.name} ${preset.name}`));
    select.append(group);
  }
  select.addEventListener("change", () => {
    const [name, figure] = select.value.split(" "), lab = labOf(name), chosen = select.value;
    if (!figure) return;
    enter(lab, lab.presets.find((preset) => preset.name === figure).values);
    select.value = chosen;
  });
}

function keyboard(event) {
  const tabs = [...$("tabs").children], at = tabs.indexOf(document.activeElement), by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (at < 0 || !by) return;
  const next = tabs[(at + by + tabs.length) % tabs.length];
  next.focus();
  openTab(next.dataset.tab);
}

async function main() {
  const about = await (await fetch("api/about")).json();
  state.labs = about.labs;
  $("version").textContent = `gyrostat ${about.version}, on this machine only`;
  $("labs").append(...about.labs.map((lab) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: lab.title, value: lab.name });
    button.addEventListener("click", () => enter(lab));
    return button;
  }));
  presets();
  copyButtons();
  table.build(about.examples);
  for (const button of $("tabs").children) button.addEventListener("click", () => openTab(button.dataset.tab));
  $("tabs").addEventListener("keydown", keyboard);
  for (const kind of ["png", "svg", "csv"]) $(kind).addEventListener("click", () => save(kind));
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  const again = () => { redraw(); phase.redraw(); table.redraw(); };
  onLooks(again);
  let timer = 0;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(again, 150); });
  document.addEventListener("server-back", () => changed());
  addEventListener("popstate", () => { readAddress(); rebuild(); openTab(state.tab); curves.ask(); });
  readAddress();
  rebuild();
  openTab(state.tab);
}

main();
