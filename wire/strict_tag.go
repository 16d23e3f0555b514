package wire

// The tags of the fields of strict.proto.

const (
	strictFrom       tag = 1<<3 | wide
	strictTo         tag = 2<<3 | wide
	strictStamp      tag = 3<<3 | wide
	strictNumber     tag = 4<<3 | varint
	strictVoting     tag = 5<<3 | varint
	strictGeneration tag = 6<<3 | varint
	strictAsks       tag = 7<<3 | length
	strictGrants     tag = 8<<3 | length
	strictAccepts    tag = 9<<3 | length
	strictVotes      tag = 10<<3 | length
	strictCopies     tag = 11<<3 | length
	strictPages      tag = 12<<3 | length
	strictLayouts    tag = 13<<3 | length
)

const (
	askID       tag = 1<<3 | varint
	askHolder   tag = 2<<3 | wide
	askOwner    tag = 3<<3 | wide
	askHi       tag = 4<<3 | wide
	askLo       tag = 5<<3 | wide
	askRule     tag = 6<<3 | wide
	askReserve  tag = 7<<3 | varint
	askWindow   tag = 8<<3 | varint
	askWant     tag = 9<<3 | varint
	askNeed     tag = 10<<3 | varint
	askExtra    tag = 11<<3 | varint
	askReturned tag = 12<<3 | varint
	askWithin   tag = 13<<3 | varint
	askHops     tag = 14<<3 | varint
	askPrefetch tag = 15<<3 | varint
)

const (
	grantID        tag = 1<<3 | varint
	grantOwner     tag = 2<<3 | wide
	grantRound     tag = 3<<3 | varint
	grantHi        tag = 4<<3 | wide
	grantLo        tag = 5<<3 | wide
	grantRule      tag = 6<<3 | wide
	grantFlags     tag = 7<<3 | varint
	grantWindow    tag = 8<<3 | varint
	grantUntil     tag = 9<<3 | varint
	grantTotal     tag = 10<<3 | varint
	grantRetry     tag = 11<<3 | varint
	grantRemaining tag = 12<<3 | varint
	grantReset     tag = 13<<3 | varint
	grantWhy       tag = 14<<3 | varint
	grantKeep      tag = 15<<3 | varint
)

const (
	watermarkWindow tag = 1<<3 | varint
	watermarkAmount tag = 2<<3 | varint
	watermarkEnd    tag = 3<<3 | varint
)

const (
	acceptHi         tag = 1<<3 | wide
	acceptLo         tag = 2<<3 | wide
	acceptRound      tag = 3<<3 | varint
	acceptOwner      tag = 4<<3 | wide
	acceptTerm       tag = 5<<3 | varint
	acceptSeq        tag = 6<<3 | varint
	acceptKnown      tag = 7<<3 | length
	acceptWatermarks tag = 8<<3 | length
)

const (
	voteHi            tag = 1<<3 | wide
	voteLo            tag = 2<<3 | wide
	voteRound         tag = 3<<3 | varint
	voteOwner         tag = 4<<3 | wide
	voteTerm          tag = 5<<3 | varint
	voteSeq           tag = 6<<3 | varint
	voteVoter         tag = 7<<3 | wide
	voteOK            tag = 8<<3 | varint
	voteWhy           tag = 9<<3 | varint
	votePromisedRound tag = 10<<3 | varint
	votePromisedOwner tag = 11<<3 | wide
	votePromisedTerm  tag = 12<<3 | varint
	voteHeld          tag = 13<<3 | length
	voteGenerations   tag = 14<<3 | length
)

const (
	generationVoter      tag = 1<<3 | wide
	generationGeneration tag = 2<<3 | varint
)

const (
	copyVoter      tag = 1<<3 | wide
	copyGeneration tag = 2<<3 | varint
	copyNumber     tag = 3<<3 | varint
	copyHi         tag = 4<<3 | wide
	copyLo         tag = 5<<3 | wide
	copyBegin      tag = 6<<3 | varint
)

const (
	pageVoter       tag = 1<<3 | wide
	pageNumber      tag = 2<<3 | varint
	pageHi          tag = 3<<3 | wide
	pageLo          tag = 4<<3 | wide
	pageBegin       tag = 5<<3 | varint
	pageWhy         tag = 6<<3 | varint
	pageRecords     tag = 7<<3 | length
	pageLast        tag = 8<<3 | varint
	pageEnded       tag = 9<<3 | varint
	pageGenerations tag = 10<<3 | length
)

const (
	recordHi         tag = 1<<3 | wide
	recordLo         tag = 2<<3 | wide
	recordRound      tag = 3<<3 | varint
	recordOwner      tag = 4<<3 | wide
	recordTerm       tag = 5<<3 | varint
	recordWatermarks tag = 6<<3 | length
	recordEnded      tag = 7<<3 | varint
)

const (
	layoutNumber  tag = 1<<3 | varint
	layoutRegions tag = 2<<3 | length
	layoutPins    tag = 3<<3 | length
)

const (
	regionName        tag = 1<<3 | length
	regionWeight      tag = 2<<3 | varint
	regionReplicas    tag = 3<<3 | length
	regionFormer      tag = 4<<3 | length
	regionGenerations tag = 5<<3 | length
)

const (
	pinRule   tag = 1<<3 | wide
	pinRegion tag = 2<<3 | length
)

const (
	entryRecord tag = 1<<3 | length
	entryLayout tag = 2<<3 | length
	entryNext   tag = 3<<3 | length
	entryMeta   tag = 4<<3 | length
)

const (
	metaGeneration  tag = 1<<3 | varint
	metaVoting      tag = 2<<3 | varint
	metaEnded       tag = 3<<3 | varint
	metaGenerations tag = 4<<3 | length
)
