// Before anything is painted: that there are scripts, and the colours that the reader chose last time.
document.documentElement.classList.add("js");
try {
  const chosen = localStorage.getItem("gyrostat-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Some browsers keep nothing for a page that was opened from a file: then the system decides.
}
