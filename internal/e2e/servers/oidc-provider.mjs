// oidc-provider, a certified OpenID Connect provider, for one client. Whoever comes signs in under any name.
//
//	node oidc-provider.mjs REDIRECT_URI
//
// It says {"url": ISSUER} when it listens, and ends with stdin.
import { createServer } from "node:http";
import Provider from "oidc-provider";
import { say } from "./tools.mjs";

console.log = console.info = console.warn = console.error; // stdout is ours
let provider;
const http = createServer(async (req, res) => {
  if (!req.url.startsWith("/interaction/")) return provider.callback()(req, res);
  if (req.method === "GET") {
    res.setHeader("Content-Type", "text/html; charset=utf-8");
    res.end('<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,"><h1>Provider</h1><form method="post"><label>Name <input name="login" required></label><button>Sign in</button></form>');
    return;
  }
  let body = "";
  for await (const part of req) body += part;
  await provider.interactionFinished(req, res, { login: { accountId: new URLSearchParams(body).get("login") } });
});

// This machine by its address, which to a browser is another site than the gateway at localhost.
http.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${http.address().port}`;
  provider = new Provider(issuer, {
    clients: [{ client_id: "graft", client_secret: "CANARY-e2e-oidc", redirect_uris: [process.argv[2]] }],
    cookies: { keys: ["of a test"] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    loadExistingGrant: async ({ oidc }) => { // nobody is asked for consent
      const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope("openid");
      await grant.save();
      return grant;
    },
  });
  say({ url: issuer });
});
process.stdin.on("end", () => process.exit()).resume();
