// The tool loop as a user of anthropic-sdk-typescript writes it: plain, streamed, with the helper, by the tool runner.
import Anthropic from "@anthropic-ai/sdk";
import { z } from "zod";

// It puts `/v1` before each path itself.
const connect = ({ url }) =>
  new Anthropic({ baseURL: url.replace(/\/v1$/, ""), apiKey: "anything", maxRetries: 0, timeout: 30_000 });

const schemaOf = ({ schema }) => {
  const { $schema, ...parameters } = z.toJSONSchema(schema);
  return parameters;
};

const textOf = ({ content }) => content.filter(({ type }) => type === "text").map(({ text }) => text).join("");

const complete = (ask) => async (session) => {
  const tools = Object.entries(session.tools).map(([name, tool]) => ({
    name,
    description: tool.description,
    input_schema: schemaOf(tool),
  }));
  const messages = [{ role: "user", content: session.question }];
  const client = connect(session);
  for (;;) {
    const message = await ask(client, { model: session.model, max_tokens: 4096, messages, tools });
    session.say(textOf(message));
    const calls = message.content.filter(({ type }) => type === "tool_use");
    if (message.stop_reason !== (calls.length ? "tool_use" : "end_turn")) throw new Error(message.stop_reason);
    if (!calls.length) return;
    const results = calls.map(({ id, name, input }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: session.call(name, input),
    }));
    messages.push({ role: "assistant", content: message.content }, { role: "user", content: results });
  }
};

// As people put it together: by `index`, deltas appended.
async function fromEvents(events) {
  let message;
  const pieces = [];
  for await (const event of events) {
    if (event.type === "message_start") message = event.message;
    if (event.type === "content_block_start") [message.content[event.index], pieces[event.index]] = [event.content_block, ""];
    if (event.type === "content_block_delta") pieces[event.index] += event.delta.text ?? event.delta.partial_json;
    if (event.type === "content_block_stop") {
      const block = message.content[event.index];
      if (block.type === "tool_use") block.input = JSON.parse(pieces[event.index] || "{}");
      else block.text = pieces[event.index];
    }
    if (event.type === "message_delta") Object.assign(message, event.delta);
    if (event.type === "message_stop") return message;
  }
  throw new Error("the stream ended without message_stop");
}

async function fromHelper(stream) {
  let text = "";
  stream.on("text", (piece) => (text += piece));
  const message = await stream.finalMessage();
  if (text !== textOf(message)) throw new Error(`heard ${text}`);
  return message;
}

export const messages = {
  create: complete((client, request) => client.messages.create(request)),
  streamed: complete(async (client, request) => fromEvents(await client.messages.create({ ...request, stream: true }))),
  helper: complete((client, request) => fromHelper(client.messages.stream(request))),
  toolRunner: async (session) => {
    const tools = Object.entries(session.tools).map(([name, tool]) => ({
      type: "custom",
      name,
      description: tool.description,
      input_schema: schemaOf(tool),
      parse: (input) => input,
      run: (input) => session.call(name, input),
    }));
    const runner = connect(session).beta.messages.toolRunner({
      model: session.model,
      max_tokens: 4096,
      messages: [{ role: "user", content: session.question }],
      tools,
    });
    for await (const message of runner) session.say(textOf(message));
  },
};
