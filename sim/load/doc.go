// Package load generates the calls of simulated clients: workloads with their
// arrival processes and keys, and recorded traffic.
//
// A Workload is split in one Source for each region. Each source draws from a
// random stream of its own, so that a change in one region or workload leaves
// the others as they are. ParseTrace reads recorded traffic from CSV.
package load
