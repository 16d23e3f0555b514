// Package processtest replays the scripts of replica/testdata/process, for
// tests of the packages that drive package replica: the daemon and the
// simulator must print the same. A script plays the peers, the callers, the
// network and the disk of one process, us-0. Each line of a run command is one
// of:
//
//	start                     a new incarnation starts on the same disk
//	peers NAME[:starting]...  the live peers, and which are not ready
//	measure NAME D            round trips are measured, also to no peer
//	rtt NAME D                a peer sends counts that measure its round trip
//	call C KEY=VALUE...       a call of one hit of each
//	calls N KEY               N calls of one hit of a value of their own each
//	now C KEY=VALUE...        likewise, but the call does not wait
//	fill N                    N calls wait for an hour, 0 for none
//	gone C                    the caller of a call goes away
//	at D                      time passes until an instant of the script
//	grant NAME [KEY=VALUE]... a peer grants all that it was asked for, or some
//	deny NAME [KEY=VALUE]...  likewise, but it denies
//	fail NAME REASON [KEY=VALUE]...
//	                          likewise, but it cannot grant it
//	accept NAME               it accepts all watermarks that it was sent
//	ask NAME KEY=VALUE...     it requests leases
//	propose NAME KEY=VALUE N  it proposes a watermark
//	copy NAME                 it requests a snapshot
//	testify NAME              it knows of no write of the process
//	chunk NAME KEY=VALUE      it sends the snapshot that it was asked for
//	counts NAME SHARD...      it sends counts of shards, in one frame
//	rights NAME               it sends a message about rights
//	bad NAME KIND             it sends a frame that is not valid
//	post NAME ID...           the process has requests of these numbers to send
//	send NAME KIND=N...       it has a message of N items of each kind to send
//	flood N                   it has a request for each of N daemons of many
//	stream NAME shut|open     a stream has no room for frames, or has again
//	disk broken|whole         writes to the disk fail, or succeed again
//	disk held|released        syncs of files do not return, or return again
//	disk compact              the log of the acceptor is replaced by a snapshot
//	disk lost|damaged|headless|old
//	                          the log is lost, ends or begins wrongly, or names
//	                          a layout before its own
//	watch KIND... | none      prints frames of counts or rights, too
//	many N NAME...            the live peers, and N other daemons
//	show                      prints the calls and the owners that were asked
//	frames                    prints how many frames about strict keys were sent
//	paths                     prints how long calls wait for each owner
//	state                     prints the acceptor and the rights
//	asks                      a call requests leases again and again
//	late N                    N calls wait for no time
//	again NAME                the StrictCall of a call is used for another
//	order                     messages to many daemons wait for room
//	probe NAME                a call waits for two keys, one of which is answered
//	twins NAME                a peer is live in many incarnations
//	forget NAME               the process does not know a peer of the shards
//	route NAME KEY=VALUE...   the process routes a request of a peer to itself
//	encode NAME:SHARD:N...    counts of N cells of shards are encoded
//	strictless                a message comes to a process without strict keys
//	unknown                   the acceptor gets a message of an unknown peer
//	rules                     prints the rules with rights
//	agent                     prints the work of a new rights agent
package processtest
