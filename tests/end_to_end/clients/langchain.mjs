// The tool loop as a user of LangChain's ChatOpenAI writes it, with and without `useResponsesApi`.
import { HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";

const complete = (useResponsesApi, ask) => async (session) => {
  const tools = Object.entries(session.tools).map(([name, { description, schema }]) =>
    tool(async (args) => session.call(name, args), { name, description, schema }),
  );
  const model = new ChatOpenAI({
    model: session.model,
    apiKey: "anything",
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: session.url },
  }).bindTools(tools);
  const messages = [new SystemMessage("Be brief."), new HumanMessage(session.question)];
  for (;;) {
    const answer = await ask(model, messages);
    session.say(answer.text);
    if (answer.invalid_tool_calls?.length) throw new Error(JSON.stringify(answer.invalid_tool_calls));
    if (!answer.tool_calls.length) return;
    messages.push(answer);
    for (const call of answer.tool_calls) {
      const chosen = tools.find(({ name }) => name === call.name);
      messages.push(new ToolMessage({ tool_call_id: call.id, content: await chosen.invoke(call.args) }));
    }
  }
};

async function streamed(model, messages) {
  let answer;
  for await (const chunk of await model.stream(messages)) answer = answer ? answer.concat(chunk) : chunk;
  return answer;
}

const ways = (useResponsesApi) => ({
  invoke: complete(useResponsesApi, (model, messages) => model.invoke(messages)),
  stream: complete(useResponsesApi, streamed),
});

export const responses = ways(true);
export const chat = ways(false);
