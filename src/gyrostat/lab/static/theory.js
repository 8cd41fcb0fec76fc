// What the theory says, and the code that reproduces the screen. All text goes in as text, never as markup.

const element = (tag, text, kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });

export function showConditions(conditions) {
  const list = document.getElementById("conditions"), holding = conditions.filter((c) => c.holds).length;
  list.replaceChildren(...conditions.map((c) => {
    const item = element("li", "", c.holds ? "holds" : "fails");
    item.title = c.note;
    item.append(element("span", c.holds ? "✓ holds" : "✗ fails", "verdict"), element("span", c.name));
    item.append(element("span", `${c.value} ${c.relation} ${c.bound} · ${c.source}`, "numbers"));
    return item;
  }));
  document.getElementById("tally").textContent = `${holding} of ${conditions.length} hold`;
}

export function showPredictions(sentences) {
  document.getElementById("sentences").replaceChildren(...sentences.map((sentence) => element("li", sentence)));
}

export function showReproduce(begin) {
  document.getElementById("python").textContent = begin.python;
  document.getElementById("command").textContent = begin.command;
}

export function copyButtons() {
  for (const what of ["python", "command"]) {
    const button = document.getElementById(`copy-${what}`), label = button.textContent;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById(what).textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(document.getElementById(what));
        button.textContent = "Selected: press Ctrl-C";
      }
      setTimeout(() => { button.textContent = label; }, 1500);
    });
  }
}
