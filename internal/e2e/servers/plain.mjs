// A server on the official TypeScript SDK (v1) that keeps no sessions, answers with JSON alone and offers no stream.
//
//	node plain.mjs
//
// It says {"url": URL} when it listens, and ends with stdin.
import { createServer } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { listTools, say, tools } from "./tools.mjs";

const silent = { progress: async () => {}, log: async () => {}, ping: async () => {} }; // there is nothing to say it on

const http = createServer(async (req, res) => {
  if (req.method !== "POST") {
    res.writeHead(405, { Allow: "POST" }).end();
    return;
  }
  const server = new Server({ name: "plain", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => listTools(params?.cursor));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) => tools[params.name].run(params.arguments, { signal, ...silent }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  res.on("close", () => server.close());
  await server.connect(transport);
  await transport.handleRequest(req, res);
});
http.listen(0, "127.0.0.1", () => say({ url: `http://127.0.0.1:${http.address().port}/mcp` }));
process.stdin.on("end", () => process.exit()).resume();
