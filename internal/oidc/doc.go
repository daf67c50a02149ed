// Package oidc finds out who a person is from one provider of the operator's choice (OpenID Connect Core 1.0). It is a
// confidential client of the authorization code flow with PKCE; whose account that is, is for others to say.
//
// What must always hold:
//   - A flow is one browser's. Its state, nonce and PKCE verifier follow from a secret that this browser alone keeps, so
//     that neither the database nor the provider has what would finish it.
//   - An ID token counts if the provider signed it with an asymmetric key of its own, for us, for this flow, and it has not
//     run out. Nothing else that the provider says is believed.
//   - Who somebody is, is issuer and subject. No e-mail address is asked for.
//   - The provider's host may be private: the operator named it. What the provider names is that host, or public.
//   - Nothing is asked of the provider before somebody wants to sign in. One that does not answer stops nothing else.
//   - An error holds no code, token or secret, and of the provider's words only those that are for the person.
package oidc
