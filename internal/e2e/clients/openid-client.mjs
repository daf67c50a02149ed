// openid-client, as somebody uses it who has a server's URL and has read what the protocol says about it.
//
//	node openid-client.mjs URL
//
// It says where its person goes, {"authorize": ADDRESS}, reads where that led, {"redirect": ADDRESS}, and says what it then
// had and was told.
import { createInterface } from "node:readline";
import * as client from "openid-client";

const [url] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (answer) => console.log(JSON.stringify(answer));
const redirectUri = "http://127.0.0.1:8977/callback";
const options = { algorithm: "oauth2", execute: [client.allowInsecureRequests] }; // a test's gateway has no TLS

const issuer = new URL(new URL(url).origin);
// Whatever a registration says, the library sends a secret in the body unless it is told otherwise: so this says that.
const registered = await client.dynamicClientRegistration(
  issuer, { client_name: "Relying", redirect_uris: [redirectUri], token_endpoint_auth_method: "client_secret_post" }, undefined, options);
const { client_id, client_secret, token_endpoint_auth_method } = registered.clientMetadata();
// A second start, which has what the first one kept.
const config = await client.discovery(issuer, client_id, { client_secret, token_endpoint_auth_method }, undefined, options);

const pkceCodeVerifier = client.randomPKCECodeVerifier();
const expectedState = client.randomState();
say({
  authorize: client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri, scope: "mcp", resource: url, state: expectedState,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: "S256",
  }),
});
const { redirect } = JSON.parse((await lines.next()).value);

const first = await client.authorizationCodeGrant(config, new URL(redirect), { pkceCodeVerifier, expectedState });
async function call(tokens) {
  const headers = new Headers({ "Content-Type": "application/json", Accept: "application/json, text/event-stream" });
  const ask = {
    jsonrpc: "2.0", id: 1, method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "openid-client", version: "1.0.0" } },
  };
  const response = await client.fetchProtectedResource(config, tokens.access_token, new URL(url), "POST", JSON.stringify(ask), headers);
  return { status: response.status };
}
say({ client: { client_id, client_secret, token_endpoint_auth_method }, first, called: await call(first) });
const second = await client.refreshTokenGrant(config, first.refresh_token);
say({ second, called: await call(second) });
await client.tokenRevocation(config, second.refresh_token);
try {
  await client.refreshTokenGrant(config, second.refresh_token);
  say({ refused: {} });
} catch (error) {
  if (!(error instanceof client.ResponseBodyError)) throw error;
  say({ refused: { status: error.status, error: error.error } });
}
process.exit(0);
