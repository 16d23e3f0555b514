// Package swarm draws whole simulator runs from seeds: the size of the cluster,
// its settings, limits, network, load and faults.
//
// A seed gives the same run for one version of this package. Half of the runs
// have limits with rights, half have strict limits.
package swarm
