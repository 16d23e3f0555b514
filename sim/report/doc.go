// Package report writes the result of a simulation: as text for a terminal, and
// as one HTML page that needs no network and no other file. The charts of the
// page are drawn by uPlot (MIT), which it carries together with its license.
package report
