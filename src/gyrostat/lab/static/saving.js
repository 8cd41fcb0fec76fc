// What is drawn as a picture or a table.

import { shown } from "./plot.js";
import { state } from "./state.js";

export async function save(kind) {
  const file = `gyrostat-${state.lab.name}-${state.values.view.replace(/\W+/g, "-")}`;
  if (kind !== "csv") return Plotly.downloadImage("plot", { format: kind, filename: file, width: 1100, height: 560, scale: kind === "png" ? 2 : 1 });
  const rows = ["side,curve,step,low,median,high"];
  for (const part of Object.values(shown.sides)) for (const [key, curve] of Object.entries(part.curves))
    part.steps.forEach((t, i) => rows.push([part.side, key, t, curve.low[i] ?? "", curve.middle[i] ?? "", curve.high[i] ?? ""].join(",")));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([rows.join("\n") + "\n"], { type: "text/csv" }));
  link.download = file + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
