// The contents at the side: folded on a narrow screen, and marked at the figure that is being read.
const contents = document.querySelector(".contents");
if (matchMedia("(max-width: 62rem)").matches) contents.querySelector("details").open = false;

const entries = new Map(all("a[href^='#']", contents).map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
const reading = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    for (const link of entries.values()) link.removeAttribute("aria-current");
    const link = entries.get(target.id);
    link?.setAttribute("aria-current", "true");
    if (link && getComputedStyle(contents).position === "sticky") link.scrollIntoView({ block: "nearest" });
  }
}, { rootMargin: "-20% 0px -70% 0px" });
all(".experiment[id]").forEach((article) => reading.observe(article));
