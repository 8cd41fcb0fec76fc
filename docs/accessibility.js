// What the theme leaves out: a name for the search dialog, tables that the keyboard can scroll, and options such as --no-code
// in one piece (a browser breaks lines after a hyphen).
addEventListener("load", () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  for (const code of document.querySelectorAll(".md-typeset :is(p, li, td) code"))
    if (/^-\S{1,28}$/.test(code.textContent)) code.classList.add("option");
});
