// A server on the official TypeScript SDK of both eras (v2) that speaks the stateless one alone.
//
//	node sdk-v2.mjs
//
// It talks as sdk-v1.mjs does.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { listTools, say, tools } from "./tools.mjs";

const handler = createMcpHandler(
  () => {
    const server = new Server({ name: "sdk-v2", version: "1.0.0" }, { capabilities: { tools: { listChanged: true }, logging: {} } });
    server.setRequestHandler("tools/list", ({ params }) => listTools(params?.cursor));
    server.setRequestHandler("tools/call", ({ params }, ctx) =>
      tools[params.name].run(params.arguments, {
        signal: ctx.mcpReq.signal,
        progress: (progress, total) =>
          ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken: ctx.mcpReq._meta.progressToken, progress, total } }),
        log: (data) => ctx.mcpReq.log("info", data, "sdk"),
        ping: async () => {}, // this era has none
      }),
    );
    return server;
  },
  { legacy: "reject" },
);

const http = createServer(toNodeHandler(handler));
http.listen(0, "127.0.0.1", () => say({ url: `http://127.0.0.1:${http.address().port}/mcp` }));
createInterface({ input: process.stdin })
  .on("line", () => handler.notify.toolsChanged())
  .on("close", () => process.exit());
