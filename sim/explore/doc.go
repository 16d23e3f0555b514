// Package explore tries everything that can happen to a few daemons within some
// steps. It is a rig: only its tests run it.
//
// Explore searches the states of a Scope depth first, on the nodes and frames
// that a daemon runs. A state is the history of each daemon. Two orders of
// events are one state if no daemon can distinguish them. Each state is
// checked, and then healed to see that the daemons agree.
package explore
