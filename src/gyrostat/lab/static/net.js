// Requests to the server: streams of JSON lines, and what is said when there is no server.

export const WINDOW = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2);
const lost = document.getElementById("lost");
let waiting = null;

export class Refused extends Error {}

// Calls `hear(message)` for every message; resolves at the end. An abort ends it quietly.
export async function stream(path, body, hear, signal) {
  let response;
  try {
    response = await fetch(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, signal, body: JSON.stringify({ window: WINDOW, ...body }),
    });
  } catch (error) {
    if (error.name !== "AbortError") serverLost();
    return;
  }
  serverFound();
  if (!response.ok) {
    const text = await response.text();
    let said = text;
    try { said = JSON.parse(text).text; } catch { /* not JSON: shown as it is */ }
    throw new Refused(said);
  }
  const reader = response.body.getReader(), decoder = new TextDecoder();
  let rest = "", ended = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const message = JSON.parse(line);
        if (message.kind === "failed") throw new Refused(message.text);
        if (message.kind === "end" || message.kind === "superseded") ended = true;
        hear(message);
      }
    }
    if (!ended) serverLost();
  } catch (error) {
    reader.cancel().catch(() => {}); // the rest is not wanted, and the server stops computing it
    if (error instanceof Refused) throw error;
    if (error.name !== "AbortError") serverLost();
  }
}

function serverLost() {
  lost.hidden = false;
  if (waiting) return;
  waiting = setInterval(async () => {
    try { if ((await fetch("api/about")).ok) { serverFound(); document.dispatchEvent(new Event("server-back")); } } catch { /* not yet */ }
  }, 2000);
}

function serverFound() {
  lost.hidden = true;
  clearInterval(waiting);
  waiting = null;
}
