// The tool loop as a user of ollama-js writes it: whole and streamed. It sends no ids.
import { Ollama } from "ollama";
import { z } from "zod";

const schemaOf = ({ schema }) => {
  const { $schema, ...parameters } = z.toJSONSchema(schema);
  return parameters;
};

const complete = (ask) => async (session) => {
  const client = new Ollama({ host: session.url.replace(/\/v1$/, "") });
  const tools = Object.entries(session.tools).map(([name, tool]) => ({
    type: "function",
    function: { name, description: tool.description, parameters: schemaOf(tool) },
  }));
  const messages = [{ role: "user", content: session.question }];
  for (;;) {
    const message = await ask(client, { model: session.model, messages, tools });
    session.say(message.content);
    if (!message.tool_calls?.length) return;
    const calls = message.tool_calls.map(({ function: { name, arguments: args } }) => ({ function: { name, arguments: args } }));
    messages.push({ role: "assistant", content: message.content, tool_calls: calls });
    for (const { function: { name, arguments: args } } of calls) {
      messages.push({ role: "tool", tool_name: name, content: session.call(name, args) });
    }
  }
};

async function streamed(client, request) {
  const message = { content: "", tool_calls: [] };
  for await (const part of await client.chat({ ...request, stream: true })) {
    message.content += part.message.content;
    message.tool_calls.push(...(part.message.tool_calls ?? []));
  }
  return message;
}

export const ollama = {
  chat: complete(async (client, request) => (await client.chat(request)).message),
  streamed: complete(streamed),
};
