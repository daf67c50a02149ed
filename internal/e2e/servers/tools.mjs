// The tools of the servers beside this file. Each runs with its arguments and a ctx of {signal, progress, log, ping}.
export const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

const text = (s) => ({ type: "text", text: s });
const object = (properties) => ({ type: "object", properties });

export const tools = {
  echo: {
    inputSchema: object({ message: { type: "string" } }),
    outputSchema: object({ message: { type: "string" } }),
    annotations: { readOnlyHint: true },
    run: (input) => ({ content: [text(input.message)], structuredContent: input }),
  },
  picture: {
    inputSchema: object({}),
    run: () => ({ content: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png", annotations: { priority: 0.5 } }, text("seen")] }),
  },
  fail: { inputSchema: object({}), run: () => ({ content: [text("no")], isError: true }) },
  work: {
    inputSchema: object({}),
    run: async (_, { progress, log, ping }) => {
      await ping();
      await log({ step: "begun" });
      for (const done of [1, 2, 3]) await progress(done, 3);
      return { content: [text("done")] };
    },
  },
  wait: {
    inputSchema: object({}),
    run: async (_, { signal, log }) => {
      await log("waiting");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      say({ cancelled: true });
      return { content: [] };
    },
  },
};

// listTools is the page of tools that begins with the cursor, three a page.
export const listTools = (cursor = "0") => {
  const from = Number(cursor);
  const all = Object.entries(tools).map(([name, { run, ...tool }]) => ({ name, ...tool }));
  const next = from + 3 < all.length ? { nextCursor: String(from + 3) } : {};
  return { tools: all.slice(from, from + 3), ...next };
};
