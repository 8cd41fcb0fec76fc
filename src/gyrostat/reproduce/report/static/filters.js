// Filters of the claims by paper, verdict and words. A link to a hidden claim shows all claims again.
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const wordsOf = (element) => (element.dataset.words ??= element.textContent.toLowerCase());

function textOf(article) { // the words of an experiment, without its claims and numbers
  return (article.dataset.words ??= all("header, figcaption, .xlabel, .ylabel, .legend, .note, .again", article)
    .map((part) => part.textContent).concat(article.dataset.name).join(" ").toLowerCase());
}

function filter() {
  const [paper, verdict] = [chosen("paper"), chosen("verdict")];
  const words = document.getElementById("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0, figures = 0;
  for (const article of all(".experiment")) {
    const here = paper === "all" || article.dataset.paper === paper;
    const about = textOf(article);
    const claims = all(".claim", article);
    for (const claim of claims) {
      const text = about + " " + wordsOf(claim);
      claim.hidden = !(here && (verdict === "all" || claim.dataset.status === verdict) && words.every((word) => text.includes(word)));
    }
    const left = claims.filter((claim) => !claim.hidden).length;
    const bare = claims.length === 0 && here && verdict === "all" && words.every((word) => about.includes(word));
    article.hidden = left === 0 && !bare;
    shown += left;
    figures += !article.hidden;
  }
  for (const section of all("section.paper")) section.hidden = !section.querySelector(".experiment:not([hidden])");
  document.getElementById("nothing").hidden = figures > 0;
  document.getElementById("count").value = `${shown} of ${all(".claim").length} claims, ${figures} figures`;
}

function showEverything() {
  for (const name of ["paper", "verdict"]) document.querySelector(`input[name=${name}][value=all]`).checked = true;
  document.getElementById("words").value = "";
  filter();
}

function showTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.closest("[hidden]")) showEverything();
  target.scrollIntoView();
}

for (const input of all("input[name=paper], input[name=verdict]")) input.addEventListener("change", filter);
document.getElementById("words").addEventListener("input", filter);
document.getElementById("everything").addEventListener("click", showEverything);
// The target of a link must not be hidden under the filters, however tall they are; on a phone they scroll with the page.
const bar = document.querySelector(".filters");
new ResizeObserver(() => {
  const height = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
  document.documentElement.style.setProperty("--bar", `${height}px`);
}).observe(bar);
addEventListener("hashchange", showTarget);
filter();
showTarget();
