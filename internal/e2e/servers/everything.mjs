// @modelcontextprotocol/server-everything on a port that the kernel chooses, on loopback alone.
//
//	node everything.mjs
//
// It says {"url": URL} when it listens, and ends with stdin.
import { Server } from "node:net";

console.log = console.error; // stdout is ours
const listen = Server.prototype.listen;
Server.prototype.listen = function (_port, then) {
  return listen.call(this, 0, "127.0.0.1", () => {
    process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${this.address().port}/mcp` }) + "\n");
    then?.();
  });
};
process.stdin.on("end", () => process.exit()).resume();
await import("../node_modules/@modelcontextprotocol/server-everything/dist/transports/streamableHttp.js");
