package wire

import "github.com/georld/rld/gossip"

// The layout of a frame of counts, after its version (1 byte) and its checksum
// (4 bytes, little-endian: the CRC-32C of the version, of the incarnations of
// the sender and the receiver, 8 bytes each, little-endian, and of all that
// follows the checksum):
//
//	frame       := flags [lastShard] nonce [echo held] [rules] [stamp] part...
//	part        := flags [flags2] [skipped] hi [changed] [ack] [unsent] [views]
//	               [group...] [refused] [digests] [repair] [rights] [loads]
//	views       := own<<1|more [n (incarnation age)...]
//	group       := head [columns] [incarnation] [n<<1|mixed] [k] [s] short...
//	               key... [more...] ref... [window...] admitted...
//	               [refunded...] [rate...] [level...] [seen...] description...
//	description := form [rule] length [carry] window [number]
//	incarnation := number [value]
//	refused     := n (kind|(reason-1)<<3 incarnation key window)...
//	digests     := n (bucket digest)...
//	repair      := n bucket...
//	rights      := n (kind|named<<3 key window rule rights second need
//	               [incarnation])...
//	loads       := n (offered<<3|moved<<2|doubts<<1|others key [window]
//	               [doubted])...
//
// Flags, heads, forms, and kinds of refusals and rights messages are single
// bytes. Rules, stamps, values of incarnations and digests are 8 bytes,
// little-endian; keys are 8 bytes, big-endian, so that they sort as they are,
// and short ones the first 2 of these.
// All other numbers are varints as in protobuf, in as few bytes as possible.
// Ages are milliseconds, rounded up. Windows are signed, in zigzag.
//
// A field in brackets is there if its flag is set. It is then not 0, but ack
// may be; a list is not empty, and a column not all 0; of echo and held one is
// not 0. So a list of messages has exactly one frame.
//
// A frame has one part, or, if lastShard is there, one or more, by shard:
// lastShard is the number of shards less one, and skipped the number of shards
// without a part before that of this one. A part without views has those of the
// part before, and differs from it if it has its own. changed is Hi-Lo.
//
// An incarnation has a number in the frame: 0 the sender, 1 the receiver, and
// from 2 in the order of first use. The value follows the first use.
//
// A group is the cells of one kind and incarnation; cells are sorted as by
// compareCells. The incarnation is there if it is not the usual one of the
// kind: the receiver of Others and Given, else the sender. n is there from 2
// cells on. k is the number of keys if one has several cells; more is then for
// each key the number of its cells beyond one. Each column has n numbers;
// rates, levels and seen are as in gossip.Cell.
//
// A frame has a table of up to maxRows descriptions, in the order of first use.
// A ref is 0 for a new description, 1+i for row i, and for a new one that the
// receiver knows by number
//
//	firstKnown + 64*(number-1) + place
//
// with the place of its window in the block of the number, below 64. Once the
// table is full, a new one replaces its last row. There is one ref, or, if
// mixed, one for each cell, and two of them differ. The descriptions of refs 0
// are at the end of the group.
//
// The window of the first cell of a row is that of the description. The column
// of windows has for each cell the distance from the latest cell of its row, 0
// for the first one. The windows of refusals and loads are distances from the
// one before, first from 0.
//
// In a description the length is in the longest unit that it is a multiple of.
// carry and window are multiples of the length, or milliseconds if they are
// not.
//
// Buckets ascend; each is its distance from the one after the bucket before.
const (
	frameUnready = 1 << iota // the sender takes no share of the work yet
	frameShards              // lastShard
	frameEcho                // echo, held
	frameRules
	frameStamp
	frameFlags = 1<<iota - 1
)

// The flags of a part.
const (
	partChanged = 1 << iota
	partAnswers // ack: the acknowledged version
	partIncomplete
	partUnsent
	partViews
	partCells
	partSkipped
	partRare // flags2
)

// The second flags of a part.
const (
	rareRefused = 1 << iota
	rareDigests
	rareRepair
	rareRights
	rareLoads
	rareNoViews // the part has no views, but the one before has
	rareFlags   = 1<<iota - 1
)

// The head of a group: its kind in the lower 3 bits, and flags.
const (
	groupKind    = 1<<3 - 1
	groupNamed   = 1 << 3 // incarnation
	groupSeveral = 1 << 4 // n
	groupMore    = 1 << 5 // another group follows
	groupShort   = 1 << 6 // s, and short keys
	groupColumns = 1 << 7
)

// The columns of a group that few have.
const (
	columnWindows = 1 << iota
	columnMore
	columnRefunded
	columnLevels
	columnSeen
	columnRates
	columnFlags = 1<<iota - 1
)

// The form of a description.
const (
	formUnit         = 1<<2 - 1 // of the length: 0 ms, 1 s, 2 min
	formCarry        = 1 << 2   // in window lengths
	formCarryMillis  = 1 << 3
	formRegional     = 1 << 4
	formWindowMillis = 1 << 5
	formRule         = 1 << 6
	formNumber       = 1 << 7 // a later frame may name the description by it
)

// The flags of a load, below its offered hits.
const (
	loadOthers = 1 << iota
	loadDoubts
	loadMoved // window
	loadBits  = iota
)

const (
	// refusedReason is the place of the reason, less one, above the kind of a
	// refused cell.
	refusedReason = 3
	// rightsNamed is the flag of a rights message with an incarnation.
	rightsNamed = 1 << 3
	// maxRows is the number of rows of the table of descriptions, and the ref
	// of the last one.
	maxRows = 1 << 10
	// firstKnown is the ref of place 0 of the known description 1.
	firstKnown = maxRows + 1
	// keySize is the size of a key in bytes.
	keySize = 8
	// shortSize is the size of a short key.
	shortSize = gossip.ShortKeyBits / 8
)
