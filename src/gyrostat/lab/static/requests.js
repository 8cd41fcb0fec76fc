// Requests to the server: answers are streams of JSON lines. Says so when the server does not answer.

import { byId } from "./elements.js";

const WINDOW = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2);
let waiting = null;

// The server refused the request or its computation failed; the message is for the user.
export class Refused extends Error {}

// Calls `receive(message)` for every message; resolves at the end of the stream. An abort ends it quietly.
export async function stream(path, body, receive, signal) {
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
    let reason = text;
    try { reason = JSON.parse(text).text; } catch { /* plain text: shown as it is */ }
    throw new Refused(reason);
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
        receive(message);
      }
    }
    if (!ended) serverLost();
  } catch (error) {
    reader.cancel().catch(() => {}); // nobody reads the rest, and the server stops computing it
    if (error instanceof Refused) throw error;
    if (error.name !== "AbortError") serverLost();
  }
}

function serverLost() {
  byId("lost").hidden = false;
  if (waiting) return;
  waiting = setInterval(async () => {
    try { if ((await fetch("api/about")).ok) { serverFound(); document.dispatchEvent(new Event("server-back")); } } catch { /* not yet */ }
  }, 2000);
}

function serverFound() {
  byId("lost").hidden = true;
  clearInterval(waiting);
  waiting = null;
}
