// The state of the page: which laboratory, the text of every control, which tab. The address holds all of it.

export const state = { labs: [], lab: null, values: {}, tab: "curves" };

export function defaults(lab) {
  return Object.fromEntries(lab.controls.map((c) => [c.name, String(c.default)]));
}

export function labOf(name) {
  return state.labs.find((lab) => lab.name === name) ?? state.labs[0];
}

// What differs from the defaults, as the address has it.
export function query() {
  const given = new URLSearchParams({ lab: state.lab.name });
  for (const c of state.lab.controls) if (state.values[c.name] !== String(c.default)) given.set(c.name, state.values[c.name]);
  if (state.tab !== "curves") given.set("tab", state.tab);
  return given;
}

export function writeAddress() {
  history.replaceState(null, "", "?" + query());
}

export function readAddress() {
  const given = new URLSearchParams(location.search);
  state.lab = labOf(given.get("lab"));
  state.values = defaults(state.lab);
  for (const [name, value] of given) if (name !== "lab" && name !== "tab") state.values[name] = value;
  const tab = given.get("tab");
  state.tab = ["curves", "phase", "data"].includes(tab) ? tab : "curves";
}
