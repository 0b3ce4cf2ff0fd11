// The tool loop as the Vercel AI SDK runs it over its provider for endpoints that are compatible with OpenAI's.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ways } from "./ai_sdk.mjs";

const provider = ({ url }) =>
  createOpenAICompatible({ name: "tagcall", baseURL: url, apiKey: "anything", includeUsage: true });

export const chat = ways((session) => provider(session).chatModel(session.model));
