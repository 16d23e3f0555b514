package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/disk"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
)

// AccountsFile has the accounts that a stopped run leaves to the next one.
const AccountsFile = "accounts.rld"

// Leftover is what a stopped run leaves to the next one: the use of its rights,
// and the run.
type Leftover struct {
	// Self and Generation are the participants of its record of rights, and
	// Until is the last window that it may have used: see agent.Stored.
	Self, Generation uint64
	Until            int64
	// Hash is a fingerprint of how it hashed keys.
	Hash     uint64
	Accounts node.Accounts
}

// Of reports whether the accounts are those of the run that stored a record and
// stopped.
func (l *Leftover) Of(record *agent.Stored) bool {
	return record != nil && record.Stopped() && record.Local.Owner == l.Self &&
		record.Region.Owner == l.Generation && record.Until() == l.Until
}

// StoreAccounts writes the accounts of a run that stopped: after its last
// decision and transfer, and after its record of rights is on disk. When it
// returns without an error they are on disk.
func (s *Storage) StoreAccounts(l *Leftover) error {
	return disk.ReplaceFile(s.Folder, AccountsFile, encodeAccounts(s, l))
}

// TakeAccounts removes the accounts of the former run and returns them, nil
// for none. A damaged file is an error, and so is one that cannot be removed
// durably: two runs would use the rights then. The file of another daemon is a
// *journal.ForeignError and stays. The error is for the log: the daemon starts
// without accounts.
func (s *Storage) TakeAccounts() (*Leftover, error) {
	if s.Diskless {
		return nil, nil
	}
	data, err := s.Folder.ReadFile(AccountsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var l *Leftover
	if err == nil {
		l, err = decodeAccounts(s, data)
	}
	if foreign, ok := errors.AsType[*journal.ForeignError](err); ok {
		return nil, foreign
	}
	removed := s.Folder.Remove(AccountsFile)
	if removed == nil {
		removed = s.Folder.Sync()
	}
	if err = errors.Join(err, removed); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Folder.Path(AccountsFile), err)
	}
	return l, nil
}

// The file is the magic, a checksum of what follows, and then numbers, with the
// name of the owner behind the first one. Times are relative to AsOf, where
// that makes them short.
const (
	accountsMagic = "rldacct2"
	accountsHead  = len(accountsMagic) + 4
)

var accountsSum = crc32.MakeTable(crc32.Castagnoli)

func encodeAccounts(s *Storage, l *Leftover) []byte {
	a := &l.Accounts
	b := make([]byte, accountsHead, accountsHead+64+32*len(a.Keys))
	copy(b, accountsMagic)
	b = binary.LittleEndian.AppendUint64(b, s.Owner.Cluster)
	b = append(binary.AppendUvarint(b, uint64(len(s.Owner.Name))), s.Owner.Name...)
	for _, v := range [...]uint64{l.Self, l.Generation, l.Hash} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.AppendVarint(binary.AppendVarint(b, l.Until), a.AsOf)
	b = binary.AppendUvarint(b, uint64(len(a.Rules)))
	for _, r := range a.Rules {
		weighted := byte(0)
		if r.Weighted {
			weighted = 1
		}
		b = append(binary.LittleEndian.AppendUint64(b, r.Name), weighted)
		b = binary.AppendVarint(b, r.After)
	}
	b = binary.AppendUvarint(b, uint64(len(a.Keys)))
	for i := range a.Keys {
		k := &a.Keys[i]
		b = binary.LittleEndian.AppendUint64(b, uint64(k.Key))
		b = binary.AppendVarint(binary.AppendVarint(b, a.AsOf-k.Window), sat.AddInt(k.Ends, -a.AsOf))
		for _, v := range [...]uint64{k.Used, k.Back, k.PrevUsed, k.PrevBack} {
			b = binary.AppendUvarint(b, v)
		}
	}
	binary.LittleEndian.PutUint32(b[len(accountsMagic):], crc32.Checksum(b[accountsHead:], accountsSum))
	return b
}

func decodeAccounts(s *Storage, data []byte) (*Leftover, error) {
	switch {
	case len(data) < accountsHead || string(data[:len(accountsMagic)]) != accountsMagic:
		return nil, fmt.Errorf("no accounts: it has %d bytes, and does not begin with %q", len(data), accountsMagic)
	case binary.LittleEndian.Uint32(data[len(accountsMagic):]) != crc32.Checksum(data[accountsHead:], accountsSum):
		return nil, errors.New("damaged: its checksum is wrong")
	}
	r := accountsReader{rest: data[accountsHead:]}
	if cluster, name := r.fixed(), r.bytes(r.uvarint()); cluster != s.Owner.Cluster || !bytes.Equal(name, []byte(s.Owner.Name)) {
		return nil, &journal.ForeignError{
			File: s.Folder.Path(AccountsFile),
			What: fmt.Sprintf("of daemon %q in cluster %016x: want that of %q in %016x", name, cluster, s.Owner.Name, s.Owner.Cluster),
		}
	}
	l := &Leftover{Self: r.fixed(), Generation: r.fixed(), Hash: r.fixed(), Until: r.varint()}
	a := &l.Accounts
	a.AsOf = r.varint()
	for range r.count(10) {
		a.Rules = append(a.Rules, node.KnownRule{Name: r.fixed(), Weighted: r.byte() != 0, After: r.varint()})
	}
	n := r.count(14)
	if n > node.MaxAccounts {
		return nil, fmt.Errorf("%d accounts: want at most %d", n, node.MaxAccounts)
	}
	a.Keys = make([]node.KeyAccount, n)
	for i := range a.Keys {
		a.Keys[i] = node.KeyAccount{
			Key:    crdt.Key(r.fixed()),
			Window: a.AsOf - r.varint(), Ends: sat.AddInt(a.AsOf, r.varint()),
			Used: r.uvarint(), Back: r.uvarint(), PrevUsed: r.uvarint(), PrevBack: r.uvarint(),
		}
	}
	if r.short || len(r.rest) != 0 {
		return nil, fmt.Errorf("damaged: its content does not fit its size, %d bytes", len(data))
	}
	return l, nil
}

// accountsReader reads numbers. Beyond the end they are 0, and short is set.
type accountsReader struct {
	rest  []byte
	short bool
}

func (r *accountsReader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.short = nil, true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *accountsReader) fixed() uint64 {
	if b := r.bytes(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *accountsReader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *accountsReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.bytes(r.read(n))
	return v
}

func (r *accountsReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.bytes(r.read(n))
	return v
}

// read returns the size of a number, or one that is too large for it.
func (r *accountsReader) read(n int) uint64 {
	if n <= 0 {
		return uint64(len(r.rest)) + 1
	}
	return uint64(n)
}

// count returns the number of items of at least a size each, 0 if they do not
// fit.
func (r *accountsReader) count(least int) uint64 {
	n := r.uvarint()
	if n > uint64(len(r.rest)/least) {
		r.rest, r.short = nil, true
		return 0
	}
	return n
}
