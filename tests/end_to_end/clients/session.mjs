// One client's way through the conversation about the vault: where it goes, what its tools are, what it saw.
import { z } from "zod";

export class Session {
  calls = [];
  texts = [];

  // `task` holds `url`, `model`, `question`, and of the vault `notes` (path to text) and `tags`.
  constructor(task) {
    Object.assign(this, task);
    this.tools = {
      search_vault: {
        description: "The paths of the notes that contain the query, one a line.",
        schema: z.object({ query: z.string() }),
        run: ({ query }) => this.#search(query),
      },
      read_note: {
        description: "The text of a note.",
        schema: z.object({ path: z.string() }),
        run: ({ path }) => this.notes[path],
      },
      list_tags: { description: "All tags of the vault.", schema: z.object({}), run: () => this.tags },
    };
  }

  // Execute a call and note it.
  call(name, args) {
    this.calls.push({ name, arguments: args });
    const tool = this.tools[name];
    return tool.run(tool.schema.parse(args));
  }

  // Note the text of an answer of the model.
  say(text) {
    if (text?.trim()) this.texts.push(text.trim());
  }

  #search(query) {
    const holds = ([path, text]) => `${path}\n${text}`.toLowerCase().includes(query.toLowerCase());
    return Object.entries(this.notes).filter(holds).map(([path]) => path).join("\n");
  }
}

// Goes `way` (one of a client's exports) through the conversation: {way, calls, texts}, and `error` when it threw.
export async function report(ways, way, task) {
  const session = new Session(task);
  const seen = { way, calls: session.calls, texts: session.texts };
  try {
    await ways[way](session);
  } catch (error) {
    seen.error = error?.stack ?? String(error);
  }
  return seen;
}
