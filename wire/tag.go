package wire

// tag is the tag of a field of peer.proto. They all are one byte long.
type tag byte

// The wire types of protobuf that peer.proto uses.
const (
	varint = 0
	length = 2
	wide   = 1 // 8 bytes
)

func (t tag) number() int { return int(t >> 3) }

const (
	frameLastShard    tag = 1<<3 | varint
	frameUnready      tag = 2<<3 | varint
	frameNonce        tag = 3<<3 | varint
	frameEcho         tag = 4<<3 | varint
	frameHeld         tag = 5<<3 | varint
	frameParts        tag = 6<<3 | length
	frameIncarnations tag = 7<<3 | length
	frameMetas        tag = 8<<3 | length
	frameRules        tag = 9<<3 | wide
	frameStamp        tag = 10<<3 | wide
)

const (
	partSkipped        tag = 1<<3 | varint
	partHi             tag = 2<<3 | varint
	partChanged        tag = 3<<3 | varint
	partAck            tag = 4<<3 | varint
	partIncomplete     tag = 5<<3 | varint
	partUnsent         tag = 6<<3 | varint
	partViews          tag = 7<<3 | length
	partCells          tag = 8<<3 | length
	partRefused        tag = 9<<3 | length
	partBuckets        tag = 10<<3 | length
	partDigests        tag = 11<<3 | length
	partRepair         tag = 12<<3 | length
	partRightsMessages tag = 13<<3 | length
	partNoViews        tag = 14<<3 | varint
	partLoads          tag = 15<<3 | length
)

const (
	loadsKeys    tag = 1<<3 | length
	loadsWindows tag = 2<<3 | length
	loadsOffered tag = 3<<3 | length
	loadsDoubted tag = 4<<3 | length
	loadsOthers  tag = 5<<3 | length
)

const (
	rightsMessageKind   tag = 1<<3 | varint
	rightsMessageKey    tag = 2<<3 | length
	rightsMessageWindow tag = 3<<3 | varint
	rightsMessageRule   tag = 4<<3 | wide
	rightsMessageRights tag = 5<<3 | varint
	rightsMessageSecond tag = 6<<3 | varint
	rightsMessageNeed   tag = 7<<3 | varint
	rightsMessageFor    tag = 8<<3 | varint
)

const (
	viewsOwn     tag = 1<<3 | varint
	viewsRegions tag = 2<<3 | length
	viewsAges    tag = 3<<3 | length
)

const (
	cellsKind        tag = 1<<3 | varint
	cellsIncarnation tag = 2<<3 | varint
	cellsKeys        tag = 3<<3 | length
	cellsMore        tag = 4<<3 | length
	cellsMetas       tag = 5<<3 | length
	cellsWindows     tag = 6<<3 | length
	cellsAdmitted    tag = 7<<3 | length
	cellsRefunded    tag = 8<<3 | length
	cellsRates       tag = 9<<3 | length
	cellsLevels      tag = 10<<3 | length
	cellsSeen        tag = 11<<3 | length
)

const (
	refusedKind        tag = 1<<3 | varint
	refusedIncarnation tag = 2<<3 | varint
	refusedKeys        tag = 3<<3 | length
	refusedWindows     tag = 4<<3 | length
	refusedReasons     tag = 5<<3 | length
)

const (
	metaKnown        tag = 1<<3 | varint
	metaRule         tag = 2<<3 | wide
	metaMinutes      tag = 3<<3 | varint
	metaSeconds      tag = 4<<3 | varint
	metaMillis       tag = 5<<3 | varint
	metaCarryWindows tag = 6<<3 | varint
	metaCarryMillis  tag = 7<<3 | varint
	metaRegional     tag = 8<<3 | varint
	metaWindow       tag = 9<<3 | varint
	metaWindowMillis tag = 10<<3 | varint
	metaNumber       tag = 11<<3 | varint
)
