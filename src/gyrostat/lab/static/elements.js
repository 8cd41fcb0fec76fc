// Elements of the page: found by id, made with text. Text from outside is never markup.

export const byId = (id) => document.getElementById(id);

export function element(tag, text = "", className = "") {
  return Object.assign(document.createElement(tag), { textContent: text, className });
}

// Plotly reads tags in titles and annotations.
export function escapeMarkup(text) {
  return text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
}
