// Package overage says what the overage budget of a rule costs and buys, from
// what its regions measured: how far the world may go over the limit at worst,
// how far it is expected to go, how many requests the rights gate refuses
// without need, and which budget would bring that below a target. It also
// works out the weights by which regions share a limit. It is pure: counts,
// ages and instants come in, reports go out.
//
// # What is bounded by what
//
// Without a budget, a region admits while what it knows of the world is below
// the limit L. Let region i make the last admission of a window, when its view
// of region j is as old as age(i,j). It knew of all but what the others
// admitted since, so
//
//	overage <= sum over j != i of arrivals(j, age(i,j)) <= (R-1) L
//
// where arrivals(j, x) is the most that j was offered in any interval of
// length x. With a budget b the rights of all regions sum to at most L(1+b) in
// every window, whatever is late, lost or cut off.
//
// The price is a region that runs out of rights while others have some left.
// What was denied that way though the limit had room is a false denial. A
// report says how many there were, and replays the demand of the windows kept
// to say how many there would have been under other budgets.
//
// Reports are for people and may use floating point. The weights become part
// of what regions agree on: rebalance.go and apportion.go are integer only.
package overage
