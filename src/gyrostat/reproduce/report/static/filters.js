// Search and filters of the claims by paper, verdict and words; folding; and links, which open the claim that they lead to.
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`)?.value ?? "all";
const searchable = (text) => text.toLowerCase().replaceAll("−", "-"); // a minus sign is typed as a hyphen
const wordsOf = (element) => (element.dataset.words ??= searchable(element.textContent));

function textOf(article) { // the words of an experiment, without its claims and numbers
  return (article.dataset.words ??= all("header, figcaption, .xlabel, .ylabel, .legend, .note, .paper-ours", article)
    .map((part) => searchable(part.textContent)).concat(searchable(article.dataset.name)).join(" "));
}

// A word is found as it is written, and a Greek letter by its name.
const has = (text, word) => text.includes(word) || (word in GREEK && text.includes(GREEK[word]));

function filter() {
  const [paper, verdict] = [chosen("paper"), chosen("verdict")];
  const words = searchable(document.getElementById("words").value).split(/\s+/).filter(Boolean);
  const active = verdict !== "all" || words.length > 0;
  let shown = 0, figures = 0;
  for (const article of all(".experiment")) {
    const here = paper === "all" || article.dataset.paper === paper;
    const about = textOf(article);
    const claims = all(".claim", article);
    for (const claim of claims) {
      const text = about + " " + wordsOf(claim);
      claim.hidden = !(here && (verdict === "all" || claim.dataset.status === verdict) && words.every((word) => has(text, word)));
    }
    const left = claims.filter((claim) => !claim.hidden).length;
    const bare = claims.length === 0 && here && verdict === "all" && words.every((word) => has(about, word));
    article.hidden = left === 0 && !bare;
    for (const lines of all(".lines", article)) lines.open = active;
    shown += left;
    figures += !article.hidden;
  }
  for (const section of all("section.paper")) section.hidden = figures > 0 && !section.querySelector(".experiment:not([hidden])");
  document.getElementById("nothing").hidden = figures > 0;
  document.getElementById("count").value = `${shown} of ${all(".claim").length} claims`;
}

function showEverything() {
  for (const name of ["paper", "verdict"]) {
    const every = document.querySelector(`input[name=${name}][value=all]`);
    if (every) every.checked = true;
  }
  document.getElementById("words").value = "";
  filter();
}

function nameIn(hash) {
  try { return decodeURIComponent(hash.slice(1)); } catch { return ""; } // not an address of ours
}

// What a link leads to: a claim, or the figure of a claim that is no longer there.
function targetOf(hash) {
  for (let name = nameIn(hash); name; name = name.slice(0, Math.max(0, name.lastIndexOf("/")))) {
    const target = document.getElementById(name);
    if (target) return target;
  }
  return null;
}

function showTarget() {
  const paper = nameIn(location.hash).split("/")[0];
  if (Object.hasOwn(PAGES, paper)) { // a link to a report that had one page
    location.replace(PAGES[paper] + location.hash);
    return;
  }
  const target = targetOf(location.hash);
  if (!target) return;
  if (target.closest("[hidden]")) showEverything();
  if (target.matches("details")) target.open = true;
  target.scrollIntoView();
}

function fold(button) {
  const open = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", open);
  button.textContent = open ? "Fold claims" : "Open claims";
  for (const claim of all("details.claim, details.lines")) claim.open = open;
}

for (const input of all("input[name=paper], input[name=verdict]")) input.addEventListener("change", filter);
document.getElementById("words").addEventListener("input", filter);
document.getElementById("everything").addEventListener("click", showEverything);
document.getElementById("fold").addEventListener("click", (event) => fold(event.currentTarget));
// The target of a link must not be hidden under the filters, however tall they are; on a phone they scroll with the page.
const bar = document.querySelector(".filters");
new ResizeObserver(() => {
  const height = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
  document.documentElement.style.setProperty("--bar", `${height}px`);
}).observe(bar);
addEventListener("hashchange", showTarget);
filter();
showTarget();
