// Runs before the page is painted: marks that scripts work, and restores the theme that the reader chose last time.
document.documentElement.classList.add("js");
try {
  const chosen = localStorage.getItem("gyrostat-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Some browsers store nothing for local files: then the system decides.
}
