// The guided tour: three steps, each with a setting, a tab to look at, and words for what to look for.

import { byId } from "./elements.js";

const STEPS = [
  {
    title: "What is invariant?", tab: "steps", values: { spread: 6 }, look: "play",
    text: "Every environment has a target of its own. Its first square, the invariant signal, is the same everywhere. Its second square, "
      + "the spurious signal, has a different strength in every environment. Press Play. Which squares does the model keep, with one "
      + "environment per batch and with mixed batches?",
  },
  {
    title: "What happens when M grows?", tab: "curves", values: { spread: 1 }, look: "slide-spread",
    text: "M says how much the strength of the spurious signal differs between environments. Move the slider of M slowly from 1 to 10, and "
      + "watch the spurious curve of HeteroSGD. The line with the prediction says where it should change.",
  },
  {
    title: "Why does pooling fail?", tab: "curves", values: { spread: 8, view: "errors" }, look: "slide-mean",
    text: "A mixed batch sees the average of the environments. The spurious strengths do not cancel in it: their mean is E s. The curves are "
      + "distances: to the invariant signal A* alone, and to A* with the mean spurious part. Which of them does each method bring to zero? "
      + "Then move the mean strength to 0: the average has nothing spurious left.",
  },
];
let at = 0, go = null;

// `visit(values, tab)` brings the page to a setting of the first laboratory.
export function build(visit) {
  go = visit;
  byId("tour-start").addEventListener("click", () => show(0));
  byId("tour-back").addEventListener("click", () => show(at - 1));
  byId("tour-next").addEventListener("click", () => (at === STEPS.length - 1 ? end() : show(at + 1)));
  byId("tour-end").addEventListener("click", end);
}

function show(index) {
  at = index;
  const step = STEPS[at];
  go(step.values, step.tab);
  byId("tour").hidden = false;
  byId("tour-title").textContent = `${at + 1} of ${STEPS.length}. ${step.title}`;
  byId("tour-text").textContent = step.text;
  byId("tour-back").disabled = at === 0;
  byId("tour-next").textContent = at === STEPS.length - 1 ? "Done" : "Next";
  byId("tour-end").hidden = at === STEPS.length - 1; // "Done" ends it, too
  mark(step.look);
  byId("tour-title").focus();
}

function end() {
  byId("tour").hidden = true;
  mark(null);
  byId("tour-start").focus();
}

// Points at what the words speak of.
function mark(id) {
  for (const marked of document.querySelectorAll(".look-here")) marked.classList.remove("look-here");
  if (id) (byId(id).closest(".control") ?? byId(id)).classList.add("look-here");
}
