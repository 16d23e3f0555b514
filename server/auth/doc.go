// Package auth decides which callers may call. A caller has a token, or a
// client certificate that the listener has verified, or it connects to a unix
// socket, whose mode states its users.
//
// Parse reads the tokens file, which holds hashes and no tokens:
//
//	tokens:
//	  - name: checkout
//	    sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
//	    domains: [shop, cart]
//	    verb: check
//	    rate: 500
//
// An Authorizer holds the tokens in force. Edges call Admit before they decide,
// once for each call and once for each check of a stream.
package auth
