package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/georld/rld/control/revocation"
	"github.com/georld/rld/quota/epoch"
)

const (
	// Format is the newest format of records that this version of rld reads,
	// beside all older ones. A change that older versions cannot apply comes
	// with the next format: Record.change refuses it in an older record.
	Format = 2
	// MaxRecordBytes bounds a record as it is stored and sent, in bytes: a
	// frame and an item on disk have 4 MiB at most.
	MaxRecordBytes = 4<<20 - 64<<10
	// maxRecordJSON bounds its JSON form.
	maxRecordJSON = 16 << 20
	// MaxRegions bounds the regions of a record.
	MaxRegions = 64
	// maxHistory bounds the commands that a record describes, maxHistoryBytes
	// their JSON form.
	maxHistory      = 1_000
	maxHistoryBytes = 1 << 20
	// maxOutcomes bounds the commands that are not done again, maxOutcomeBytes
	// their JSON form.
	maxOutcomes     = 1_000
	maxOutcomeBytes = 1 << 20
	// MaxRebalanced bounds the commands of the rebalancer, which the others
	// must not make room for.
	MaxRebalanced = 100
	// maxEarlier bounds the earlier recoveries.
	maxEarlier = 32
	// maxRefusal bounds the reason of a refusal in an outcome, in bytes.
	maxRefusal = 128
	// Whole is the sum of the weights of all regions, in parts per million.
	Whole = 1_000_000
)

// Record is the state of the cluster: the value that the entries of the control
// log add up to. Records are immutable: the slices of a record must not be
// modified.
type Record struct {
	Format int `json:"format"`
	// Next is the format that may follow.
	Next    NextFormat `json:"next_format,omitzero"`
	Version Version    `json:"version"`
	// First is the index at which the recovery began, From the version of the
	// record that it began with; zero for the founding.
	First uint64  `json:"first"`
	From  Version `json:"from"`
	// Earlier are the beginnings of the recoveries before, the oldest first.
	Earlier []Beginning `json:"earlier,omitempty"`
	// Changes counts the entries that changed the record, in all recoveries.
	Changes uint64  `json:"changes"`
	Cluster Cluster `json:"cluster"`
	// Regions are ordered by name.
	Regions []Region `json:"regions"`
	// Genesis are the regions at the founding, ordered by name. It never
	// changes.
	Genesis []FirstRegion `json:"genesis"`
	// Epochs are the newest epochs of regions, ascending. All weights are those
	// of the newest one.
	Epochs []epoch.Epoch `json:"epochs,omitempty"`
	// Voters are ordered by Raft.
	Voters []Voter `json:"voters"`
	// History are the latest commands that changed the record, the oldest
	// first.
	History []Command `json:"history,omitempty"`
	// Rebalanced are the latest commands of the rebalancer, apart.
	Rebalanced []Command `json:"rebalanced,omitempty"`
	// Outcomes are those of the latest commands, done and refused, the oldest
	// first. None of these commands is done again.
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Dropped are the latest commands that a recovery dropped, as far as a
	// daemon was left that knew of them.
	Dropped []Command `json:"dropped,omitempty"`
	// Ended are the latest ends of regions that are not there, ordered by name.
	Ended []EndedRegion `json:"ended,omitempty"`
	// Dead are the ids that ended, ordered.
	Dead []DeadID `json:"dead,omitempty"`

	// Revoked are the daemons whose certificates do not count, since format 2.
	Revoked revocation.List `json:"revoked,omitempty"`

	// Limits are the limits of the cluster.
	Limits Limits `json:"limits,omitzero"`
	// Layouts are the layouts of strict keys.
	Layouts Layouts `json:"layouts,omitzero"`

	hash string // of Hash, empty before its first call
}

// Beginning is where a recovery began: with the record of From.
type Beginning struct {
	Recovery Recovery `json:"recovery"`
	From     Version  `json:"from"`
}

// Outcome is the outcome of a command: done or refused.
type Outcome struct {
	Request Number  `json:"request"`
	Version Version `json:"version"` // of the entry
	// Refused is why the command changed nothing, empty for one that is done.
	Refused string `json:"refused,omitempty"`
	// Rebalanced marks a command of the rebalancer. Fewer of these are kept.
	Rebalanced bool `json:"rebalanced,omitempty"`
}

// Cluster is the founding of a cluster.
type Cluster struct {
	ID Number `json:"id"`
	// Begun is when it was founded, in Unix milliseconds.
	Begun int64 `json:"begun"`
	// From is the start of the first window in which it admits hits by rights
	// and of strict keys, in Unix milliseconds: what ran before may have used
	// those that began earlier. 0 if nothing ran before.
	From int64 `json:"from,omitempty"`
}

// Region is one region of the cluster.
type Region struct {
	Name string `json:"name"`
	// Generation is the version of the entry that added the region. A region
	// that was removed and added again has another one.
	Generation Version `json:"generation"`
	// Weight is its share of limits without shares of their own, in parts per
	// million. All weights sum to Whole.
	Weight uint32 `json:"weight"`
	// Draining regions have no weight and will be removed.
	Draining bool `json:"draining,omitempty"`
	// Founders are the daemons that hold the rights of the generation when it
	// begins, ordered, and Horizon the horizon of their epoch in milliseconds,
	// 0 for none. A region without founders holds nothing.
	Founders []ID  `json:"founders,omitempty"`
	Horizon  int64 `json:"horizon,omitempty"`
	// From is the first window in which they may use limits of the region
	// alone, in Unix milliseconds: a former generation, or a former cluster,
	// may have used those before.
	From int64 `json:"from,omitempty"`
}

// Voter is one voter of the control log, or a learner that will become one.
type Voter struct {
	// Raft is the name of the voter in raft. It is drawn for each voter and is
	// never used again.
	Raft    Number `json:"raft"`
	Daemon  ID     `json:"daemon"`
	Region  string `json:"region"`
	Learner bool   `json:"learner,omitempty"`
	// Witness voters are of a region that is not in the record.
	Witness bool `json:"witness,omitempty"`
	// Former reports that the region was removed since the daemon became a
	// voter. The region may be there again, with another daemon in its place.
	Former bool `json:"former,omitempty"`
}

// Command is an entry that an operator or the cluster itself asked for.
type Command struct {
	// Request names the command: repeated, it is done once.
	Request Number `json:"request"`
	// Version is that of its entry, At when it was proposed in Unix
	// milliseconds.
	Version Version `json:"version"`
	At      int64   `json:"at"`
	Author  string  `json:"author"`
	Reason  string  `json:"reason,omitempty"`
	// Text describes what it did.
	Text string `json:"text"`
	// Added is the region that it added. A recovery that drops the command
	// leaves the region in epochs that daemons acknowledged.
	Added *RegionChange `json:"added,omitempty"`
}

// Region returns the region with a name, nil for none.
func (r *Record) Region(name string) *Region {
	i := slices.IndexFunc(r.Regions, func(g Region) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Regions[i]
}

// open reports whether a region is there and does not drain.
func (r *Record) open(name string) bool {
	g := r.Region(name)
	return g != nil && !g.Draining
}

// mayVote reports whether daemons of a region may vote: witnesses of a region
// without rights, and others of a region that is there and does not drain.
func (r *Record) mayVote(region string, witness bool) bool {
	if witness {
		return r.Region(region) == nil
	}
	return r.open(region)
}

// Voter returns the voter with a raft name, nil for none.
func (r *Record) Voter(raft Number) *Voter {
	i := slices.IndexFunc(r.Voters, func(s Voter) bool { return s.Raft == raft })
	if i < 0 {
		return nil
	}
	return &r.Voters[i]
}

// VoterOf returns the voter of a daemon, nil for none.
func (r *Record) VoterOf(d ID) *Voter {
	i := slices.IndexFunc(r.Voters, func(s Voter) bool { return s.Daemon == d })
	if i < 0 {
		return nil
	}
	return &r.Voters[i]
}

// Voting returns how many voters vote.
func (r *Record) Voting() int {
	n := 0
	for _, s := range r.Voters {
		if !s.Learner {
			n++
		}
	}
	return n
}

// remember adds a command to the history, which forgets the oldest ones.
func (r *Record) remember(c Command) {
	r.History = latest(append(slices.Clone(r.History), c), maxHistory, maxHistoryBytes)
}

// rememberRebalanced adds a command to those of the rebalancer.
func (r *Record) rememberRebalanced(c Command) {
	r.Rebalanced = latest(append(slices.Clone(r.Rebalanced), c), MaxRebalanced, maxHistoryBytes/10)
}

// latest returns the last commands of a list, of a number and a size in JSON.
func latest(all []Command, most, bytes int) []Command {
	first := len(all)
	for first > 0 && len(all)-first < most {
		o := &all[first-1]
		// A byte of a text has at most six in JSON.
		if bytes -= 256 + 6*(len(o.Author)+len(o.Reason)+len(o.Text)); bytes < 0 {
			break
		}
		if a := o.Added; a != nil {
			bytes -= 512 + 6*len(a.Name) + 72*(len(a.Founders)+len(a.Epoch.Retired))
		}
		first--
	}
	return all[first:]
}

// Contains reports whether the record has the entry of a version: no
// recovery dropped it, as far as the record knows them.
func (r *Record) Contains(v Version) bool {
	recovery, index, from := r.Version.Recovery, r.Version.Index, r.From
	for i := len(r.Earlier) - 1; recovery != v.Recovery; i-- {
		recovery, index = from.Recovery, from.Index
		switch {
		case recovery == v.Recovery:
		case i < 0 || r.Earlier[i].Recovery != recovery:
			return false
		default:
			from = r.Earlier[i].From
		}
	}
	return v.Index <= index
}

// conclude adds the outcome of a command, and drops the oldest ones.
func (r *Record) conclude(o Outcome) {
	all := append(slices.Clone(r.Outcomes), o)
	rebalanced := 0
	for i := range all {
		if all[i].Rebalanced {
			rebalanced++
		}
	}
	if rebalanced > MaxRebalanced {
		i := slices.IndexFunc(all, func(o Outcome) bool { return o.Rebalanced })
		all = slices.Delete(all, i, i+1)
	}
	r.Outcomes = all[max(0, len(all)-maxOutcomes):]
}

// Outcome returns the outcome of a command, nil if it is not known.
func (r *Record) Outcome(request Number) *Outcome {
	i := slices.IndexFunc(r.Outcomes, func(o Outcome) bool { return o.Request == request })
	if i < 0 {
		return nil
	}
	return &r.Outcomes[i]
}

// at returns a copy of the record with another version. changes reports that
// the caller will change more than that.
func (r *Record) at(v Version, changes bool) *Record {
	next := *r
	next.Version = v
	if changes {
		next.Changes, next.hash = r.Changes+1, ""
	}
	return &next
}

// Encode returns the JSON form of the record. Two equal records have the same
// form.
func (r *Record) Encode() []byte {
	data, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("control: a record has no JSON form: %v", err)) // all its types have one
	}
	return data
}

// checkBytes returns an error for a record that is too large. There is room for
// the outcomes of later commands, which are not checked.
func (r *Record) checkBytes() error {
	form := r.Encode()
	size := len(form)
	if size > maxRecordJSON-maxOutcomeBytes {
		return fmt.Errorf("the record would have %d bytes in JSON: want at most %d", size, maxRecordJSON-maxOutcomeBytes)
	}
	if size > MaxRecordBytes-maxOutcomeBytes { // packed data is never larger
		size = len(pack(form))
	}
	if size > MaxRecordBytes-maxOutcomeBytes {
		return fmt.Errorf("the record would have %d bytes compressed: want at most %d", size, MaxRecordBytes-maxOutcomeBytes)
	}
	return nil
}

// unpackRecord reads a record as it is stored and sent.
func unpackRecord(data []byte, reads int) (*Record, error) {
	form, err := unpack(data, maxRecordJSON)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return DecodeRecord(form, reads)
}

// Hash returns a hash of everything but the version. Its first call is not safe
// for concurrent use; a Node makes it before others get the record.
func (r *Record) Hash() string {
	if r.hash == "" {
		c := *r
		c.Version = Version{}
		c.Limits.Sets = r.Limits.hashed()
		sum := sha256.Sum256(c.Encode())
		r.hash = hex.EncodeToString(sum[:16])
	}
	return r.hash
}

// shortHash returns the first 32 bits of the hash, as messages contain it. The
// next entry has all of it.
func (r *Record) shortHash() uint32 {
	v, _ := strconv.ParseUint(r.Hash()[:8], 16, 32) // these are hexadecimal
	return uint32(v)
}

// DecodeRecord reads the JSON form of a record, for a daemon that reads formats
// up to a number. It refuses a record that breaks an invariant, and one of a
// newer format with a *FormatError.
func DecodeRecord(data []byte, reads int) (*Record, error) {
	if len(data) > maxRecordJSON {
		return nil, fmt.Errorf("record of %d bytes: want at most %d", len(data), maxRecordJSON)
	}
	var head struct{ Format int }
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if head.Format < 1 {
		return nil, fmt.Errorf("record of format %d: want 1 or more", head.Format)
	}
	if head.Format > reads {
		return nil, &FormatError{What: "record", Format: head.Format, Reads: reads}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var r Record
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := r.Limits.verify(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if !bytes.Equal(r.Encode(), data) {
		return nil, fmt.Errorf("record: not in the form that Encode returns")
	}
	return &r, nil
}

// validate returns an error if the record breaks an invariant.
func (r *Record) validate() error {
	if r.Cluster.ID == 0 {
		return fmt.Errorf("no cluster id")
	}
	if len(r.Regions) == 0 || len(r.Regions) > MaxRegions {
		return fmt.Errorf("%d regions: want 1 to %d", len(r.Regions), MaxRegions)
	}
	sum := uint64(0)
	for i, g := range r.Regions {
		if err := checkTexts(g.Name); err != nil {
			return fmt.Errorf("region at place %d: %w", i, err)
		}
		if g.Name == "" || i > 0 && r.Regions[i-1].Name >= g.Name {
			return fmt.Errorf("region %q at place %d: want names in order, each once", g.Name, i)
		}
		if g.Draining && g.Weight != 0 {
			return fmt.Errorf("region %q drains with a weight of %d: want 0", g.Name, g.Weight)
		}
		sum += uint64(g.Weight)
	}
	if sum != Whole {
		return fmt.Errorf("weights sum to %d: want %d", sum, Whole)
	}
	for i, s := range r.Voters {
		if s.Raft == 0 || i > 0 && r.Voters[i-1].Raft >= s.Raft {
			return fmt.Errorf("voter %v at place %d: want them in order, each once", s.Raft, i)
		}
	}
	if r.Voting() == 0 {
		return fmt.Errorf("no voters")
	}
	if len(r.History) > maxHistory || len(r.Rebalanced) > MaxRebalanced {
		return fmt.Errorf("%d commands, %d of the rebalancer: want at most %d and %d", len(r.History), len(r.Rebalanced), maxHistory, MaxRebalanced)
	}
	if len(r.Dropped) > maxDropped || len(r.Earlier) > maxEarlier {
		return fmt.Errorf("%d dropped commands, %d earlier recoveries: want at most %d and %d", len(r.Dropped), len(r.Earlier), maxDropped, maxEarlier)
	}
	if len(r.Outcomes) > maxOutcomes {
		return fmt.Errorf("%d outcomes: want at most %d", len(r.Outcomes), maxOutcomes)
	}
	if err := r.validateDead(); err != nil {
		return err
	}
	if err := r.validateEnded(); err != nil {
		return err
	}
	if err := r.Revoked.Validate(); err != nil {
		return err
	}
	if err := r.validateEpochs(); err != nil {
		return err
	}
	return errors.Join(r.Layouts.validate(), r.Limits.validate(), r.validateNext())
}
