// Package explore tries everything that can happen to a few daemons within some
// steps. It is a rig: only its tests run it.
//
// Explore searches the states of a Scope depth first, on the nodes and frames
// that a daemon runs. A state is the history of each daemon; two orders of
// events that no daemon can tell apart are one state. Each state is checked, and
// healed to see that the daemons come to agree.
package explore
