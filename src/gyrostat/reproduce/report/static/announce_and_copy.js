// Announcements for screen readers, and the buttons that copy a link or a command.
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Announce to screen readers. The element is emptied first, so that the same words are announced again.
function say(words) {
  const status = document.getElementById("said");
  status.textContent = "";
  setTimeout(() => { status.textContent = words; }, 30);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // No permission, or a browser that denies the clipboard to local files: the older method.
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
