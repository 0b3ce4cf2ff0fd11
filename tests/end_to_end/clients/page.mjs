// The script of a web page that uses tagcall through openai-node; `browser.mjs` calls `goThrough` and reads what it saw.
import * as openai from "./openai_node.mjs";
import { report } from "./session.mjs";

// What any page may send without asking first: a form's kind of request, whose answer it cannot read.
const blindly = (path, bodyOf) => async (session) => {
  await fetch(session.url + path, { method: "POST", mode: "no-cors", body: JSON.stringify(bodyOf(session)) });
};

const client = {
  responses: {
    ...openai.responses,
    blindly: blindly("/responses", ({ model, question }) => ({ model, input: question })),
  },
  chat: {
    ...openai.chat,
    blindly: blindly("/chat/completions", ({ model, question }) => ({
      model,
      messages: [{ role: "user", content: question }],
    })),
  },
};

window.goThrough = async (api, way, task) => {
  const seen = await report(client[api], way, task);
  const shown = document.body.appendChild(document.createElement("pre"));
  shown.textContent = `${location.origin} asks ${task.url}, ${api} ${way}\n${JSON.stringify(seen, null, 2)}`;
  return seen;
};
