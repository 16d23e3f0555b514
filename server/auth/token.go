package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// Verb is the permission of a token.
type Verb uint8

// The verbs. Read is a part of Check.
const (
	// Check allows calls that charge hits, and refunds.
	Check Verb = iota
	// Read allows calls that charge nothing: peeks.
	Read
)

// String returns the verb as the tokens file has it.
func (v Verb) String() string { return [...]string{"check", "read"}[v] }

// Everything is the domain of a token that may call all domains.
const Everything = "*"

// Bounds of a tokens file.
const (
	// MaxBytes is the size of the longest file.
	MaxBytes = 1 << 20
	// MaxTokens is the number of tokens in a file. It bounds the labels of
	// metrics.
	MaxTokens  = 1_000
	maxDomains = 1_000 // of one token
	maxRate    = 1_000_000
	maxName    = 63  // bytes
	maxDomain  = 256 // bytes
)

// Token is one token of a file. It holds no secret.
type Token struct {
	// Name is unique in the file. It is a label of metrics.
	Name string
	// SHA256 is the hash of the token.
	SHA256 [sha256.Size]byte
	// Domains are the domains that the token may call, Everything for all.
	Domains []string
	Verb    Verb
	// Rate is how many calls a second the token may make, 0 for any number.
	Rate float64
	// Role is that of an operator. Tokens of callers have None, and those of
	// operators have neither Domains nor Verb nor Rate.
	Role Role
}

// allows reports whether a token may call a domain.
func (t *Token) allows(domain string) bool {
	return slices.Contains(t.Domains, Everything) || slices.Contains(t.Domains, domain)
}

// Tokens are the valid tokens of a file.
type Tokens []Token

// prefix makes a token recognizable for scanners of leaked secrets.
const prefix = "rld_"

// New returns a token with 256 random bits, and its hash.
func New() (token string, sum [sha256.Size]byte) {
	var random [32]byte
	rand.Read(random[:]) // never fails
	token = prefix + base64.RawURLEncoding.EncodeToString(random[:])
	return token, Hash(token)
}

// Hash returns the hash of a token. A plain SHA-256 is enough: a token of New
// has 256 random bits, so it cannot be found from its hash.
func Hash(token string) [sha256.Size]byte {
	var buf [128]byte // keeps the copy of a usual token on the stack
	return sha256.Sum256(append(buf[:0], token...))
}

// short is the part of a hash that a table is searched by.
func short(sum *[sha256.Size]byte) uint64 { return binary.BigEndian.Uint64(sum[:8]) }
