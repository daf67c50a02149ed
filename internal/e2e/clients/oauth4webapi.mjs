// The strictest OAuth client there is, oauth4webapi, from the URL of a server alone to a call and to the end of the grant.
//
//	node oauth4webapi.mjs URL none|client_secret_basic|client_secret_post
//
// It says where its person goes, {"authorize": ADDRESS}, reads where that led, {"redirect": ADDRESS}, once
// more where they did not allow it, and says what it then had and was told. Every answer has passed the library's own checks.
import { createInterface } from "node:readline";
import * as oauth from "oauth4webapi";

const [url, method] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (answer) => console.log(JSON.stringify(answer));
const http = { [oauth.allowInsecureRequests]: true }; // a test's gateway has no TLS
const redirectUri = "http://127.0.0.1:8976/callback";

// call opens a session with an access token, and is the status and what a refusal said.
async function call(token) {
  const headers = new Headers({ "Content-Type": "application/json", Accept: "application/json, text/event-stream" });
  const ask = {
    jsonrpc: "2.0", id: 1, method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "oauth4webapi", version: "1.0.0" } },
  };
  try {
    const response = await oauth.protectedResourceRequest(token, "POST", new URL(url), headers, JSON.stringify(ask), http);
    return { status: response.status };
  } catch (error) {
    if (!(error instanceof oauth.WWWAuthenticateChallengeError)) throw error;
    const [{ scheme, parameters }] = error.cause;
    return { status: error.status, scheme, ...parameters };
  }
}

// ended calls until that is refused: the other replica hears of a revocation a moment later.
async function ended(token) {
  const until = Date.now() + 5000;
  for (;;) {
    const answer = await call(token);
    if (answer.status !== 200 || Date.now() > until) return answer;
  }
}

// refused is the OAuth error of something that must not work.
async function refused(promise) {
  try {
    await promise;
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError) return { status: error.status, error: error.error };
    throw error;
  }
  throw new Error("it was let through");
}

const resource = await oauth.processResourceDiscoveryResponse(new URL(url), await oauth.resourceDiscoveryRequest(new URL(url), http));
const issuer = new URL(resource.authorization_servers[0]);
const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...http }));
const client = await oauth.processDynamicClientRegistrationResponse(
  await oauth.dynamicClientRegistrationRequest(
    as, { client_name: "Strict", redirect_uris: [redirectUri], token_endpoint_auth_method: method }, http),
);
const auth = {
  none: () => oauth.None(),
  client_secret_basic: () => oauth.ClientSecretBasic(client.client_secret),
  client_secret_post: () => oauth.ClientSecretPost(client.client_secret),
}[method]();

const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const authorize = new URL(as.authorization_endpoint);
authorize.search = new URLSearchParams({
  response_type: "code", client_id: client.client_id, redirect_uri: redirectUri, state, resource: resource.resource, scope: "mcp",
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
});
let params, denied;
while (!params) {
  say({ authorize, denied });
  const { redirect } = JSON.parse((await lines.next()).value);
  try {
    params = oauth.validateAuthResponse(as, client, new URL(redirect), state);
  } catch (error) {
    if (!(error instanceof oauth.AuthorizationResponseError)) throw error;
    denied = error.error;
  }
}

const exchange = () => oauth.authorizationCodeGrantRequest(
  as, client, auth, params, redirectUri, verifier, { additionalParameters: { resource: resource.resource }, ...http });
const refresh = (token) => oauth.refreshTokenGrantRequest(as, client, auth, token, http);
// No document names the keys: the one who verifies has to know where they are.
const keys = { ...as, jwks_uri: new URL("/.well-known/jwks.json", issuer).href };
const claims = (token) => oauth.validateJwtAccessToken(
  keys, new Request(url, { headers: { Authorization: `Bearer ${token}` } }), resource.resource, http);

const first = await oauth.processAuthorizationCodeResponse(as, client, await exchange());
say({ client, first, claims: await claims(first.access_token), called: await call(first.access_token) });

const second = await oauth.processRefreshTokenResponse(as, client, await refresh(first.refresh_token));
say({ second, claims: await claims(second.access_token), called: await call(second.access_token) });

// The token alone first, then the grant.
await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, second.access_token, http));
say({ without: await ended(second.access_token), called: await call(first.access_token) });
await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, second.refresh_token, http));
say({
  without: await ended(first.access_token),
  refused: await refused(refresh(second.refresh_token).then((r) => oauth.processRefreshTokenResponse(as, client, r))),
});
process.exit(0);
