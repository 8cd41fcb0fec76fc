// The state of the page: the laboratory, the text of every control, the tab. The address holds all of it.

export const state = { labs: [], lab: null, values: {}, tab: "curves" };

export function defaults(lab) {
  return Object.fromEntries(lab.controls.map((c) => [c.name, String(c.default)]));
}

export function labOf(name) {
  return state.labs.find((lab) => lab.name === name) ?? state.labs[0];
}

// The address holds what differs from the defaults.
export function writeAddress() {
  const query = new URLSearchParams({ lab: state.lab.name });
  for (const c of state.lab.controls) if (state.values[c.name] !== String(c.default)) query.set(c.name, state.values[c.name]);
  if (state.tab !== "curves") query.set("tab", state.tab);
  history.replaceState(null, "", "?" + query);
}

export function readAddress() {
  const query = new URLSearchParams(location.search);
  state.lab = labOf(query.get("lab"));
  state.values = defaults(state.lab);
  for (const [name, value] of query) if (name !== "lab" && name !== "tab") state.values[name] = value;
  const tab = query.get("tab");
  state.tab = ["curves", "steps", "phase", "data"].includes(tab) ? tab : "curves";
}
