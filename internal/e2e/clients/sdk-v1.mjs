// A client on the official TypeScript SDK (v1), driven line by line.
//
//	node sdk-v1.mjs URL [TOKEN]
//
// It connects, then answers each JSON line on stdin with one on stdout: {"list": true} with the tools, {"call": NAME,
// "arguments": {...}} with the result, {"ping": true} with nothing in it. An answer carries the session id in use; a
// failure is {"error": message}. It ends with stdin, leaving the session open as a client that is killed would.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);
const headers = token ? { Authorization: `Bearer ${token}` } : {};
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const client = new Client({ name: "graft-e2e", version: "1.0.0" });

const say = (answer) => console.log(JSON.stringify({ session: transport.sessionId, ...answer }));

async function perform(command) {
  if (command.list) return { tools: (await client.listTools()).tools };
  if (command.call) return { result: await client.callTool({ name: command.call, arguments: command.arguments }) };
  if (command.ping) return { result: await client.ping() };
  throw new Error(`unknown command ${JSON.stringify(command)}`);
}

try {
  await client.connect(transport);
} catch (error) {
  say({ error: error.message, code: error.code });
  process.exit(1);
}
say({ server: client.getServerVersion(), instructions: client.getInstructions(), protocol: transport.protocolVersion });
for await (const line of createInterface({ input: process.stdin })) {
  try {
    say(await perform(JSON.parse(line)));
  } catch (error) {
    say({ error: error.message, code: error.code });
  }
}
process.exit(0);
