// Package overage reports the cost and the benefit of a rule's overage budget,
// from measurements of its regions: the worst and the expected overage of the
// limit, the requests that the rights gate denies needlessly, and the budget
// that would bring those below a target. It also derives the weights by which
// regions share a limit. It is pure: counts, ages and times come in, reports go
// out.
//
// # The bounds
//
// Without a budget, a region admits while its estimate of the world is below
// the limit L. Let region i make the last admission of a window, when its view
// of region j has age(i,j). It lacks only the hits that the others admitted
// since, so
//
//	overage <= sum over j != i of arrivals(j, age(i,j)) <= (R-1) L
//
// where arrivals(j, x) is the most that j was offered in any interval of length
// x. With a budget b, the rights of all regions sum to at most L(1+b) in every
// window, whatever is late, lost or partitioned.
//
// The price is a region that runs out of rights while others have some left.
// Hits that are denied for that reason although the limit has room are false
// denials. A report counts them, and replays the demand of the kept windows to
// count those under other budgets.
//
// Reports may use floating point. The weights become part of the agreement
// between regions, so rebalance.go and apportion.go use integers only.
package overage
