// Sliders, number fields and choices, built from the controls that the server describes.

import { byId } from "./elements.js";
import { state } from "./page_state.js";

const form = byId("controls");
const STEPS = 400; // of a logarithmic slider

// Builds the controls of the laboratory; `onChange(name)` is called after every change of a value.
export function buildControls(onChange) {
  const changed = (name) => { showNeeded(); onChange(name); };
  const groups = new Map();
  for (const control of state.lab.controls) {
    if (control.name === "view") continue;
    if (!groups.has(control.group)) groups.set(control.group, []);
    groups.get(control.group).push(control);
  }
  form.replaceChildren(...[...groups].map(([name, controls]) => {
    const set = document.createElement("fieldset"), legend = document.createElement("legend");
    legend.textContent = name;
    set.append(legend, ...controls.map((control) => build(control, changed)));
    return set;
  }));
  showNeeded();
}

// Hides controls that do not matter with the present choices.
function showNeeded() {
  for (const row of form.querySelectorAll(".control")) {
    const [name, ...values] = JSON.parse(row.dataset.needs);
    row.hidden = Boolean(name) && !values.includes(state.values[name]);
  }
}

function build(control, changed) {
  const row = document.createElement("div"), label = document.createElement("label");
  row.className = control.kind === "choice" ? "control wide" : "control";
  row.dataset.needs = JSON.stringify(control.needs);
  label.textContent = control.label;
  label.htmlFor = `set-${control.name}`;
  if (control.help) label.title = row.title = control.help;
  if (control.symbol) {
    const symbol = document.createElement("span");
    symbol.className = "symbol";
    symbol.textContent = control.symbol;
    label.append(symbol);
  }
  row.append(label);
  if (control.kind === "choice") row.append(choice(control, changed));
  else row.append(...numbers(control, changed));
  return row;
}

function choice(control, changed) {
  const select = document.createElement("select");
  select.id = `set-${control.name}`;
  select.name = control.name;
  for (const word of control.options) select.append(new Option(word, word));
  select.value = state.values[control.name];
  select.addEventListener("change", () => { state.values[control.name] = select.value; changed(control.name); });
  return select;
}

function numbers(control, changed) {
  const box = document.createElement("input"), slider = document.createElement("input");
  box.type = "number"; box.id = `set-${control.name}`; box.name = control.name; box.step = "any"; box.min = control.low; box.max = control.high;
  slider.type = "range"; slider.id = `slide-${control.name}`; slider.setAttribute("aria-label", `${control.label} ${control.symbol}`);
  const linear = control.scale === "linear";
  slider.min = linear ? control.low : 0; slider.max = linear ? control.high : STEPS; slider.step = linear ? control.step : 1;
  box.value = state.values[control.name];
  slider.value = positionOf(control, Number(box.value));
  slider.setAttribute("aria-valuetext", box.value);
  slider.addEventListener("input", () => {
    box.value = state.values[control.name] = valueAt(control, Number(slider.value));
    slider.setAttribute("aria-valuetext", box.value);
    changed(control.name);
  });
  box.addEventListener("input", () => { slider.value = positionOf(control, Number(box.value)); state.values[control.name] = box.value; changed(control.name); });
  return [box, slider];
}

// The position of a slider for a value, and the text of the value at a position.
function positionOf(control, value) {
  if (control.scale === "linear") return value;
  return Math.round(STEPS * Math.log(value / control.low) / Math.log(control.high / control.low));
}

function valueAt(control, position) {
  if (control.scale === "linear") return String(control.kind === "whole" ? position : Number(position.toPrecision(6)));
  const value = control.low * (control.high / control.low) ** (position / STEPS);
  return String(control.kind === "whole" ? Math.round(Number(value.toPrecision(2))) : Number(value.toPrecision(3)));
}

// Marks the controls that a refusal names.
export function markRefused(sentence) {
  for (const input of form.querySelectorAll("[name]")) {
    input.toggleAttribute("aria-invalid", false);
    if (sentence && new RegExp(`\\b${input.name}\\b`).test(sentence)) input.setAttribute("aria-invalid", "true");
  }
}
