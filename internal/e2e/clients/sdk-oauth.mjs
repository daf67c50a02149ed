// A client on an official TypeScript SDK, v1 or v2, that has the URL of a server and no credential.
//
//	node sdk-oauth.mjs v1|v2 URL [DOCUMENT]
//
// With DOCUMENT that URL is its id; without, it registers. It answers each JSON line on stdin with one on stdout:
//
//	{"list": true}                      connects where it is not, and the tools
//	{"call": NAME, "arguments": {...}}  connects where it is not, and the result
//	{"redirect": ADDRESS}               finishes the authorization that began
//
// An answer says whom it is, what tokens it has and what it threw away so far; {"authorize": ADDRESS} is in it where the SDK began an
// authorization instead. It ends with stdin.
import { createInterface } from "node:readline";

const [version, url, document] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport, UnauthorizedError, method } = await {
  v1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
    method: "client_secret_post",
  }),
  v2: async () => ({ ...(await import("@modelcontextprotocol/client")), method: undefined }),
}[version]();

const redirectUrl = "http://localhost:8978/callback";
let information, tokens, verifier, authorize;
const begun = new Map(); // verifiers by state: the stream of a session may begin an authorization beside a call
const dropped = new Set();
const provider = {
  redirectUrl,
  clientMetadataUrl: document,
  clientMetadata: {
    client_name: "SDK", redirect_uris: [redirectUrl], grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
    token_endpoint_auth_method: method,
  },
  state: () => crypto.randomUUID(),
  clientInformation: () => information,
  saveClientInformation: (saved) => (information = saved),
  tokens: () => tokens,
  saveTokens: (saved) => (tokens = saved),
  codeVerifier: () => verifier,
  saveCodeVerifier: (saved) => (verifier = saved),
  redirectToAuthorization: (address) => {
    begun.set(address.searchParams.get("state"), verifier);
    authorize ??= address;
  },
  invalidateCredentials: (what) => {
    dropped.add(what);
    if (what === "all" || what === "client") information = undefined;
    if (what === "all" || what === "tokens") tokens = undefined;
  },
};

let transport, client;
async function connect() {
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const opening = new Client({ name: "graft-e2e", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await opening.connect(transport);
  client = opening;
}

async function perform(command) {
  authorize = undefined;
  if (command.redirect) {
    const params = new URL(command.redirect).searchParams;
    verifier = begun.get(params.get("state"));
    if (!verifier) throw new Error(`the state ${params.get("state")} is nobody's`);
    await transport.finishAuth(version === "v1" ? params.get("code") : params);
    client = undefined; // which a session of what it was before may be open in
    return {};
  }
  if (!client) await connect();
  if (command.call) return { result: await client.callTool({ name: command.call, arguments: command.arguments }) };
  return { tools: (await client.listTools()).tools };
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = await perform(JSON.parse(line));
  } catch (error) {
    answer = { error: error.message, unauthorized: error instanceof UnauthorizedError };
  }
  console.log(JSON.stringify({ client: information, tokens, dropped: [...dropped], authorize, ...answer }));
}
process.exit(0);
