// The panel at the right: conditions and predictions of the theory, and the code that reproduces the screen.

import { byId, element } from "./elements.js";

export function showConditions({ headline, conditions }) {
  byId("headline").textContent = headline.replace(/\b([XFU]) ([XGU]ᵀ)/g, "$1\u00a0$2");
  const holding = conditions.filter((c) => c.holds).length;
  byId("conditions").replaceChildren(...conditions.map((c) => {
    const item = element("li", "", c.holds ? "holds" : "fails");
    item.title = c.note;
    item.append(element("span", c.holds ? "✓ holds" : "✗ fails", "verdict"), element("span", c.name));
    item.append(element("span", `${powers(c.value)} ${c.relation} ${powers(c.bound)} · ${c.source}`, "numbers"));
    return item;
  }));
  byId("tally").textContent = conditions.length ? `(${holding} of ${conditions.length} hold)` : "";
}

// 7.72e-08 as 7.72·10⁻⁸.
const powers = (text) => text.replace(/e([+-])0*(\d+)/g, (_, sign, digits) => "·10" + (sign === "-" ? "⁻" : "") + [...digits].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join(""));

// What was said about another experiment is not left standing.
export function clearTheory() {
  for (const id of ["headline", "tally", "sentences", "conditions", "python", "command"]) byId(id).replaceChildren();
}

export function showPredictions(sentences) {
  byId("sentences").replaceChildren(...sentences.map((sentence) => element("li", sentence)));
}

export function showCode({ python, command }) {
  byId("python").textContent = python;
  byId("command").textContent = command;
}
