// A client on the official TypeScript SDK of both eras (v2), driven line by line.
//
//	node sdk-v2.mjs URL TOKEN legacy|auto
//
// It connects, then answers each JSON line on stdin with one on stdout:
//
//	{"list": true}                      the tools
//	{"call": NAME, "arguments": {...}}  the result, with the progress that came before it and the questions that were
//	                                    asked meanwhile; it accepts each form and fills the fields that it requires
//	{"cancel": NAME}                    calls the tool and aborts the call at its first progress
//	{"change": NAME}                    calls the tool, again if need be, until the list is said to have changed; how many
//	                                    calls that took, and the new list
//	{"listen": true}                    opens subscriptions/listen
//	{"closed": true}                    how that ended, once it has
//
// An answer carries the session id in use; a failure is {"error": message}. It ends with stdin.
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, token, mode] = process.argv.slice(2);
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const fill = { name: "Alice", color: "blue", username: "alice", email: "alice@example.com", ok: true };
let asked = [];
let changed = () => {};
let subscription;

const client = new Client(
  { name: "graft-e2e", version: "1.0.0" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode },
    listChanged: { tools: { onChanged: (error, tools) => changed(error ? { error: error.message } : { tools }) } },
  },
);
client.setRequestHandler("elicitation/create", ({ params }) => {
  asked.push(params.message);
  return { action: "accept", content: Object.fromEntries(params.requestedSchema.required.map((field) => [field, fill[field]])) };
});

const say = (answer) => console.log(JSON.stringify({ session: transport.sessionId, ...answer }));

async function call(name, args) {
  const progress = [];
  asked = [];
  const result = await client.callTool({ name, arguments: args }, { onprogress: (p) => progress.push(p.progress) });
  return { result, progress, asked };
}

async function cancel(name) {
  const aborted = new AbortController();
  try {
    await client.callTool({ name }, { signal: aborted.signal, onprogress: () => aborted.abort("enough") });
  } catch (error) {
    if (aborted.signal.aborted) return { aborted: true };
    throw error;
  }
  throw new Error(`${name} came to its end`);
}

// A client that was cut off does not hear what changes until it has connected again.
async function change(name) {
  for (let calls = 1; ; calls++) {
    const told = new Promise((resolve) => (changed = resolve));
    await client.callTool({ name });
    let late;
    const heard = await Promise.race([told, new Promise((resolve) => (late = setTimeout(resolve, 3000)))]);
    clearTimeout(late);
    if (heard) return { calls, ...heard };
  }
}

async function perform(command) {
  if (command.list) return { tools: (await client.listTools()).tools };
  if (command.call) return call(command.call, command.arguments);
  if (command.cancel) return cancel(command.cancel);
  if (command.change) return change(command.change);
  if (command.listen) {
    subscription = await client.listen({ toolsListChanged: true });
    return { honored: subscription.honoredFilter };
  }
  if (command.closed) return { closed: await subscription.closed };
  throw new Error(`unknown command ${JSON.stringify(command)}`);
}

try {
  await client.connect(transport);
} catch (error) {
  say({ error: error.message, code: error.code });
  process.exit(1);
}
subscription = client.autoOpenedSubscription;
say({ server: client.getServerVersion(), instructions: client.getInstructions(), protocol: client.getNegotiatedProtocolVersion() });
for await (const line of createInterface({ input: process.stdin })) {
  try {
    say(await perform(JSON.parse(line)));
  } catch (error) {
    say({ error: error.message, code: error.code });
  }
}
process.exit(0);
