// Package consent keeps what a client asked for at the authorization endpoint until a person has answered it. Its answer is
// the address that the person's browser goes on to: with a code, or with the protocol's error.
//
// What must hold:
//   - A request is known by 256 random bits, lives ten minutes, is bound to the browser that it began in, and is answered
//     once.
//   - Nothing is shown as the client's, and no answer is sent anywhere, before client and redirect URI are proven. For one
//     whose id is a document's URL that is once somebody has signed in: the document is fetched for nobody else.
//   - What was proven is kept: what the client says of itself later changes nothing.
//   - Agent, grant and code are made in one transaction with the end of the request.
package consent
