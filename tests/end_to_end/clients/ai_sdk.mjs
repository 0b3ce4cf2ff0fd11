// The tool loop as the Vercel AI SDK runs it, over the OpenAI provider's two APIs.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, streamText, tool } from "ai";

const request = (session, model) => ({
  model,
  system: "Be brief.",
  prompt: session.question,
  maxRetries: 0,
  stopWhen: isStepCount(8),
  tools: Object.fromEntries(
    Object.entries(session.tools).map(([name, { description, schema }]) => [
      name,
      tool({ description, inputSchema: schema, execute: async (args) => session.call(name, args) }),
    ]),
  ),
});

// `modelOf` makes a language model for a session.
export const ways = (modelOf) => ({
  generateText: async (session) => {
    const { steps } = await generateText(request(session, modelOf(session)));
    for (const step of steps) session.say(step.text);
  },
  streamText: async (session) => {
    const result = streamText({ ...request(session, modelOf(session)), onError: () => {} });
    let text = "";
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "text-delta") text += part.text;
      if (part.type === "finish-step") {
        session.say(text);
        text = "";
      }
    }
  },
});

const provider = ({ url }) => createOpenAI({ baseURL: url, apiKey: "anything" });

export const responses = ways((session) => provider(session).responses(session.model));
export const chat = ways((session) => provider(session).chat(session.model));
