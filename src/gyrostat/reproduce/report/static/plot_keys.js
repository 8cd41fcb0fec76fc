// Keys in a focused plot: plus and minus zoom, arrows move, 0 resets. Ranges of log axes are exponents, so the same formulas hold.
const MOVES = { ArrowLeft: ["x", -1], ArrowRight: ["x", 1], ArrowDown: ["y", -1], ArrowUp: ["y", 1] };

function look(plot, change) {
  const update = {};
  for (const name of ["xaxis", "yaxis"]) {
    const [low, high] = plot._fullLayout[name].range.map(Number);
    update[`${name}.range`] = change(name[0], low, high);
  }
  return Plotly.relayout(plot, update);
}

function reset(plot) {
  const spec = specOf(plot), update = {};
  for (const name of ["xaxis", "yaxis"]) {
    const range = spec.layout[name].range;
    if (range) update[`${name}.range`] = [...range];
    else update[`${name}.autorange`] = true;
  }
  return Plotly.relayout(plot, update);
}

document.addEventListener("keydown", (event) => {
  const plot = event.target.closest?.(".plot");
  if (!plot || plot !== event.target || !drawn.has(plot) || event.ctrlKey || event.metaKey || event.altKey) return;
  const zoom = { "+": 0.8, "=": 0.8, "-": 1.25 }[event.key], move = MOVES[event.key];
  if (zoom) look(plot, (_, low, high) => [low, high].map((end) => (low + high) / 2 + (end - (low + high) / 2) * zoom));
  else if (move) look(plot, (name, low, high) => [low, high].map((end) => end + (name === move[0] ? move[1] * (high - low) / 8 : 0)));
  else if (event.key === "0") reset(plot);
  else return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.reset");
  if (!button) return;
  const figure = button.closest(".figure");
  all(".legend button[aria-pressed=false]", figure).forEach((entry) => entry.click());
  all(".plot", figure).filter((plot) => drawn.has(plot)).forEach(reset);
  say("View reset");
});
