// The numbers of a figure as a CSV file, made from the data in the page, so that it works without the results folder.
const COLUMNS = ["panel", "series", "x", "y", "low", "high", "value"];

function rowsOf(panel) {
  const rows = [];
  const add = (series, row) => rows.push({ panel: panel.title, series, ...row });
  for (const trace of panel.data.filter((one) => one.meta !== undefined)) {
    if (trace.type === "heatmap") {
      const { label, x, y } = trace.meta;
      trace.z.forEach((line, i) => line.forEach((value, j) => add(label, { x: x[j], y: y[i], value })));
    } else {
      const between = (i) => trace.customdata?.[i] ?? [];
      const name = (i) => (trace.text ? { [trace.type === "bar" ? "x" : "y"]: trace.text[i] } : {}); // of the category
      trace.x.forEach((x, i) => add(trace.meta, { x, y: trace.y[i], ...name(i), low: between(i)[0], high: between(i)[1] }));
    }
  }
  for (const { label, at = [] } of panel.entries) at.forEach(([axis, value]) => add(label, { [axis]: value }));
  return rows;
}

const quoted = (value) => {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

function csvOf(figure) {
  const rows = panels(figure).flatMap(rowsOf);
  return [COLUMNS, ...rows.map((row) => COLUMNS.map((name) => row[name]))].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.csv");
  if (!button) return;
  const figure = button.closest(".experiment").querySelector(".figure");
  const address = URL.createObjectURL(new Blob([csvOf(figure)], { type: "text/csv;charset=utf-8" }));
  const name = figure.dataset.figure.replaceAll("/", "-");
  Object.assign(document.createElement("a"), { href: address, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  say(`${name}.csv saved`);
});
