// Package api holds the JSON types of the admin listener: the answers of its
// pages, and the queries and commands that it accepts. The JSON names are
// stable, since programs read them. An unknown value is null, which differs
// from 0. The listener replaces null lists by empty ones, and numbers that JSON
// cannot carry by null, so lists are never null on the wire.
package api

import (
	"fmt"
	"time"
)

// DaemonRef identifies one incarnation of a daemon. Name is "" if only the
// incarnation is known. A daemon without a region has neither.
type DaemonRef struct {
	Region      string `json:"region"`
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
}

// Failure is the answer to a request that failed.
type Failure struct {
	Error string `json:"error"`
}

// UnknownRuleError reports the name of a rule that is not in force.
type UnknownRuleError struct {
	Rule string
	// Closest is the most similar name, "" if none is similar.
	Closest string
}

// Error implements error.
func (e *UnknownRuleError) Error() string {
	text := fmt.Sprintf("there is no rule %q that daemons count together", Clip(e.Rule))
	if e.Closest != "" {
		text += fmt.Sprintf(" (did you mean %q?)", e.Closest)
	}
	return text
}

// Clip shortens text that an error message quotes to 60 runes.
func Clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}

// RulesHash formats a hash of rules as 16 hexadecimal digits.
func RulesHash(h uint64) string { return fmt.Sprintf("%016x", h) }

// Seconds returns d in seconds, or nil if d is negative: the engine reports
// unknown ages and round trips as -1.
func Seconds(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	return new(d.Seconds())
}
