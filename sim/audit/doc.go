// Package audit checks the promises of a simulated cluster from outside.
//
// Each auditor compares what daemons answer, send and hold with the ground
// truth: every decision of the run, in order, which no replica knows as a
// whole. No auditor predicts the state of a replica from its inputs.
//
//	messages     messages are well formed and cells stay where they belong
//	views        no replica states a view of a peer as younger than it is
//	hlc          stamps and windows move forward and stay near wall clocks
//	bounds       messages, keys, cells and events stay within their limits
//	overage      no replica admits beyond a limit by the counts it holds
//	denials      no replica denies without a reason in the ground truth
//	progress     a client well under its limit is admitted when all is well
//	cells        replicas hold no more than was counted, and no less than
//	             they state to know
//	convergence  replicas of a quiet cluster hold the same, and all of it
//	rights       rights are conserved: answered, used and transferred
//	admitted     the world admits no more than all rights sum to
//	strict       owners grant no more than the limit
package audit
