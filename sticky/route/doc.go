// Package route maps strict keys to their owners.
//
// A Layout lists the regions that can be the owner of keys, with weights, pins
// of rules to regions, and the strict voters of each region. A Routing combines
// one layout with the live daemons:
//
//	key --> home region                  pin of the rule, or weighted rendezvous
//	    --> owner in that region         rendezvous among its live, ready voters
//
// Daemons with the same layout and the same view of live daemons compute the
// same owner, without any message. They may disagree for a while; package
// quorum keeps that safe. Rendezvous hashing (Thaler and Ravishankar, 1998)
// moves only the keys of a daemon that dies and of a region whose weight
// changes.
//
// Layouts are numbered. The control log announces the next one and makes it
// active once enough acceptors of package quorum have copied the watermarks.
package route
