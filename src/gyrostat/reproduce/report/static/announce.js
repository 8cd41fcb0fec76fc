const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Tell a reader who does not see the page; emptied first, so that the same words are heard twice.
function say(words) {
  const place = document.getElementById("said");
  place.textContent = "";
  setTimeout(() => { place.textContent = words; }, 30);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // No permission, or a browser that keeps its clipboard from files: the old way.
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const { link, copy: text } = button.dataset;
  await copy(link ? location.href.split("#")[0] + "#" + link : text);
  const before = button.dataset.word ??= button.textContent;
  button.textContent = "Copied";
  button.focus();
  say(link ? "Link copied" : "Command copied");
  setTimeout(() => { button.textContent = before; }, 1500);
});
