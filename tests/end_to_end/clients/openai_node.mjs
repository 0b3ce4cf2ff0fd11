// The tool loop as a user of openai-node writes it: plain, over a stream, and with the stream helpers. Runs in browsers too.
import OpenAI from "openai";
import { z } from "zod";

const connect = ({ url }) =>
  new OpenAI({ baseURL: url, apiKey: "anything", maxRetries: 0, timeout: 30_000, dangerouslyAllowBrowser: true });

const schemaOf = ({ schema }) => {
  const { $schema, ...parameters } = z.toJSONSchema(schema);
  return parameters;
};

function expect(seen, wanted) {
  if (JSON.stringify(seen) !== JSON.stringify(wanted)) {
    throw new Error(`saw ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`);
  }
}

// Responses: `ask` gets the client and a request and gives the Response.
const completeResponses = (ask) => async (session) => {
  const tools = Object.entries(session.tools).map(([name, tool]) => ({
    type: "function",
    name,
    description: tool.description,
    parameters: schemaOf(tool),
    strict: true,
  }));
  const input = [{ role: "user", content: session.question }];
  const client = connect(session);
  for (;;) {
    const response = await ask(client, { model: session.model, input, tools });
    session.say(response.output_text);
    const calls = response.output.filter((item) => item.type === "function_call");
    if (!calls.length) return;
    input.push(...response.output);
    for (const call of calls) {
      const output = session.call(call.name, JSON.parse(call.arguments));
      input.push({ type: "function_call_output", call_id: call.call_id, output });
    }
  }
};

async function fromResponseEvents(events) {
  let text = "";
  const done = [];
  for await (const event of events) {
    if (event.type === "response.output_text.delta") text += event.delta;
    if (event.type === "response.output_item.done") done.push(event.item);
    if (event.type === "response.completed") {
      expect(done, event.response.output);
      return { ...event.response, output_text: text };
    }
  }
  throw new Error("the stream ended without response.completed");
}

async function fromResponseHelper(stream) {
  let text = "";
  let calls = 0;
  stream.on("response.output_text.delta", ({ delta }) => (text += delta));
  stream.on("response.function_call_arguments.done", () => (calls += 1));
  const response = await stream.finalResponse();
  expect([text, calls], [response.output_text, response.output.filter((item) => item.type === "function_call").length]);
  return response;
}

export const responses = {
  create: completeResponses((client, request) => client.responses.create(request)),
  streamed: completeResponses(async (client, request) =>
    fromResponseEvents(await client.responses.create({ ...request, stream: true })),
  ),
  helper: completeResponses((client, request) => fromResponseHelper(client.responses.stream(request))),
};

// Chat Completions: `ask` gets the client and a request and gives the message.
const completeChat = (ask) => async (session) => {
  const tools = Object.entries(session.tools).map(([name, tool]) => ({
    type: "function",
    function: { name, description: tool.description, parameters: schemaOf(tool) },
  }));
  const messages = [{ role: "user", content: session.question }];
  const client = connect(session);
  for (;;) {
    const message = await ask(client, { model: session.model, messages, tools });
    session.say(message.content);
    if (!message.tool_calls?.length) return;
    messages.push(message);
    for (const call of message.tool_calls) {
      const content = session.call(call.function.name, JSON.parse(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
};

// The message of a stream, put together by appending whatever comes, as people do.
async function fromChunks(chunks) {
  const message = { role: undefined, content: "" };
  let finished;
  for await (const chunk of chunks) {
    const [{ delta, finish_reason }] = chunk.choices;
    message.role ??= delta.role;
    message.content += delta.content ?? "";
    for (const { index, id, type, function: piece } of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      const call = (message.tool_calls[index] ??= { id: "", type: "", function: { name: "", arguments: "" } });
      call.id += id ?? "";
      call.type += type ?? "";
      call.function.name += piece?.name ?? "";
      call.function.arguments += piece?.arguments ?? "";
    }
    finished = finish_reason;
  }
  expect([message.role, finished], ["assistant", message.tool_calls ? "tool_calls" : "stop"]);
  return message;
}

// The helper that runs the tools by itself.
async function runTools(session) {
  const tools = Object.entries(session.tools).map(([name, tool]) => ({
    type: "function",
    function: {
      name,
      description: tool.description,
      parameters: schemaOf(tool),
      parse: JSON.parse,
      function: (args) => session.call(name, args),
    },
  }));
  const runner = connect(session).chat.completions.runTools({
    model: session.model,
    messages: [{ role: "user", content: session.question }],
    tools,
    stream: true,
  });
  runner.on("message", ({ role, content }) => role === "assistant" && session.say(content));
  await runner.done();
}

export const chat = {
  create: completeChat(async (client, request) => (await client.chat.completions.create(request)).choices[0].message),
  streamed: completeChat(async (client, request) =>
    fromChunks(await client.chat.completions.create({ ...request, stream: true })),
  ),
  helper: completeChat((client, request) => client.chat.completions.stream(request).finalMessage()),
  runTools,
};
