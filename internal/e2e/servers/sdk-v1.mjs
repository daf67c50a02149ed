// A server on the official TypeScript SDK of the sessions era (v1).
//
//	node sdk-v1.mjs
//
// It says {"url": URL} when it listens, and then one line for each thing that a test waits for: {"cancelled": true} when a
// call of the tool wait was cancelled, {"ended": true} when a client ended its session. Each line on stdin makes it tell
// every client that its tools changed. It ends with stdin.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { listTools, say, tools } from "./tools.mjs";

const sessions = new Map(); // id → {server, transport}

const open = async () => {
  const server = new Server({ name: "sdk-v1", version: "1.0.0" }, { capabilities: { tools: { listChanged: true }, logging: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => listTools(params?.cursor));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) =>
    tools[params.name].run(params.arguments, {
      signal: extra.signal,
      progress: (progress, total) =>
        extra.sendNotification({ method: "notifications/progress", params: { progressToken: extra._meta.progressToken, progress, total } }),
      log: (data) => extra.sendNotification({ method: "notifications/message", params: { level: "info", logger: "sdk", data } }),
      ping: () => extra.sendRequest({ method: "ping" }, { parse: (v) => v, safeParse: (data) => ({ success: true, data }) }),
    }),
  );
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, { server, transport }),
    onsessionclosed: (id) => sessions.delete(id) && say({ ended: true }),
  });
  await server.connect(transport);
  return transport;
};

const http = createServer(async (req, res) => {
  const id = req.headers["mcp-session-id"];
  if (id && !sessions.has(id)) {
    res.writeHead(404).end();
    return;
  }
  const transport = id ? sessions.get(id).transport : await open();
  await transport.handleRequest(req, res);
});
http.listen(0, "127.0.0.1", () => say({ url: `http://127.0.0.1:${http.address().port}/mcp` }));
createInterface({ input: process.stdin })
  .on("line", () => sessions.forEach(({ server }) => server.sendToolListChanged()))
  .on("close", () => process.exit());
