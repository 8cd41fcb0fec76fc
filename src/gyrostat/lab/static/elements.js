// Elements of the page: found by id, made with text (text from outside is never markup), copied and saved.

export const byId = (id) => document.getElementById(id);

export function element(tag, text = "", className = "") {
  return Object.assign(document.createElement(tag), { textContent: text, className });
}

// Plotly reads tags in titles and annotations.
export function escapeMarkup(text) {
  return text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
}

// Downloads a text as a file.
export function saveFile(text, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A button "copy-ID" that copies the text of the element ID.
export function buildCopyButton(id) {
  const button = byId(`copy-${id}`), label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(byId(id).textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(byId(id));
      button.textContent = "Selected: press Ctrl-C";
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}
