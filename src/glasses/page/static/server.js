// What is sent to the server and what it says: one sentence each, read out to everybody.
const secret = document.querySelector("meta[name=glasses-write]").content;
const message = document.getElementById("message");
let hiding = 0;

export function say(words, { bad = false, buttons = [] } = {}) {
  const box = document.createElement("div");
  box.className = bad ? "said bad" : "said";
  const text = document.createElement("span");
  text.textContent = words;
  box.append(text, ...buttons.map(([label, action]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => { message.replaceChildren(); action(); });
    return button;
  }));
  message.replaceChildren(box);
  clearTimeout(hiding);
  hiding = setTimeout(() => message.replaceChildren(), bad || buttons.length ? 15000 : 6000);
}

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// All that is posted may be sent twice (the server knows it again), so it is sent until the server answers.
async function send(path, body) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await fetch(`/api/${path}`, {
        method: "POST", headers: { "content-type": "application/json", "x-glasses-write": secret }, body: JSON.stringify(body),
      });
    } catch (error) {
      if (path === "ask" || attempt >= 60) throw error;
      say("The server does not answer: waiting for it, your entry is kept.", { bad: true });
      await wait(700);
    }
  }
}

// The answer, or null after an error that was said; `onError` may say it elsewhere.
export async function post(path, body, { onError = null, quiet = false } = {}) {
  let found;
  try {
    const answer = await send(path, body);
    found = await answer.json();
    found.ok = answer.ok;
  } catch {
    found = { ok: false, error: "The server does not answer: see whether it runs, then try again." };
  }
  if (!found.ok) {
    if (onError) onError(found);
    else say(found.error, { bad: true });
    return null;
  }
  if (!quiet) say(found.said, { buttons: found.undo ? [["Undo", () => post(found.undo.path, found.undo.body)]] : [] });
  return found;
}

export async function get(address) {
  const answer = await fetch(address);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}
