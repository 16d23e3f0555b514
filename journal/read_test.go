package journal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// aJournal returns the bytes of a file that was begun with records and then got
// some, and after how many bytes how many records are there.
func aJournal(t testing.TB) (data []byte, ends map[int64]int, all []string) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	all = []string{"begun with this", ""}
	if err := j.Rewrite(slices.Values(asBytes(all))); err != nil {
		t.Fatal(err)
	}
	ends = map[int64]int{j.Size(): len(all)}
	for _, batch := range [][]string{{"one"}, {"", "two\x00\x00\x00"}, {strings.Repeat("three ", 200)}, {"four", "five"}} {
		mustAppend(t, j, batch...)
		all = append(all, batch...)
		ends[j.Size()] = len(all)
	}
	return stored(t, j), ends, all
}

// TestCutAnywhere cuts the file at every byte. The bytes before the first
// Append cannot have been torn; after that, whole batches stay.
func TestCutAnywhere(t *testing.T) {
	data, ends, all := aJournal(t)
	begun := int64(len(data))
	for end := range ends {
		begun = min(begun, end)
	}
	keep := 0
	for n := range len(data) + 1 {
		if k, ok := ends[int64(n)]; ok {
			keep = k
		}
		c, err := parse(file, data[:n], me)
		var damaged *DamagedError
		if int64(n) < begun {
			if !errors.As(err, &damaged) {
				t.Errorf("cut to %d: %v, want damage", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut to %d: %v", n, err)
		}
		wantRecords(t, fmt.Sprintf("cut to %d", n), c, all[:keep]...)
		if _, whole := ends[int64(n)]; whole != (c.Cut == nil) {
			t.Errorf("cut to %d: says %+v", n, c.Cut)
		}
		if c.Cut != nil && c.Cut.Offset+c.Cut.Bytes != int64(n) {
			t.Errorf("cut to %d: says %+v", n, c.Cut)
		}
	}
}

// TestFlipAnywhere changes every bit of the file, one at a time. None is taken,
// and none passes for a batch that was torn.
func TestFlipAnywhere(t *testing.T) {
	data, _, _ := aJournal(t)
	for bit := range len(data) * 8 {
		data[bit/8] ^= 1 << (bit % 8)
		_, err := parse(file, data, me)
		var damaged *DamagedError
		var foreign *ForeignError
		if !errors.As(err, &damaged) && !errors.As(err, &foreign) {
			t.Fatalf("bit %d of byte %d changed: %v", bit%8, bit/8, err)
		}
		if damaged != nil && damaged.Offset > int64(bit/8) {
			t.Fatalf("byte %d changed: said to be damaged at %d", bit/8, damaged.Offset)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
}

// TestSectorsNeverWritten: of the last batch any sectors may be missing when
// the machine ended while it was written, and the others not.
func TestSectorsNeverWritten(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	mustAppend(t, j, "kept")
	last := int(j.Size())
	mustAppend(t, j, strings.Repeat("new ", 700))
	end := int(j.Size())
	data := stored(t, j)
	first, sectors := last/sectorBytes, (end-1)/sectorBytes-last/sectorBytes+1
	if sectors < 5 {
		t.Fatalf("%d sectors, want more", sectors)
	}
	lose := func(data []byte, which int) []byte {
		data = bytes.Clone(data)
		for i := range sectors {
			if which>>i&1 == 1 {
				clear(data[max(last, (first+i)*sectorBytes):min(end, (first+i+1)*sectorBytes)])
			}
		}
		return data
	}
	for which := 1; which < 1<<sectors; which++ {
		c, err := parse(file, lose(data, which), me)
		if err != nil || c.Cut == nil || c.Cut.Offset != int64(last) {
			t.Fatalf("sectors %b lost: %+v, %v, want it cut off at %d", which, c, err, last)
		}
		wantRecords(t, "cut off", c, "kept")
	}
	// With a batch after it, it was on disk.
	j, c := mustOpen(t, dir)
	wantRecords(t, "all", c, "kept", strings.Repeat("new ", 700))
	mustAppend(t, j, "later")
	data = append(data, closeBatch(appendRecord(openBatch(nil), []byte("later")), 0, 2)...)
	for which := 1; which < 1<<sectors; which++ {
		var damaged *DamagedError
		if _, err := parse(file, lose(data, which), me); !errors.As(err, &damaged) || damaged.Offset != int64(last) {
			t.Fatalf("sectors %b lost of a batch before the last: %v", which, err)
		}
	}
}

// TestBatchesOutOfPlace: batches that are whole, but not those that were
// written there.
func TestBatchesOutOfPlace(t *testing.T) {
	batch := func(number uint64) []byte {
		return closeBatch(appendRecord(openBatch(nil), []byte("x")), 0, number)
	}
	header := appendHeader(nil, me, headSize)
	join := func(parts ...[]byte) []byte { return bytes.Join(append([][]byte{header}, parts...), nil) }
	if _, err := parse(file, join(batch(0), batch(1)), me); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"one is missing":        join(batch(0), batch(2)),
		"twice":                 join(batch(0), batch(0)),
		"cut after one missing": join(batch(0), batch(2)[:leastBatch]),
		"lengths":               join(closeBatch(append(openBatch(nil), 200, 1, 'x'), 0, 0)),
	} {
		var damaged *DamagedError
		if c, err := parse(file, data, me); !errors.As(err, &damaged) {
			t.Errorf("%s: %+v, %v, want damage", name, c, err)
		}
	}
}

// FuzzParse: on any content of a file, parse does not panic and returns records
// or an error. It accepts the records again after they are written anew.
func FuzzParse(f *testing.F) {
	data, _, _ := aJournal(f)
	header := appendHeader(nil, me, headSize)
	f.Add(data[len(header):])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, batches []byte) {
		if c, err := parse(file, batches, me); (c == nil) == (err == nil) {
			t.Fatalf("%+v beside the error %v", c, err)
		}
		c, err := parse(file, append(bytes.Clone(header), batches...), me)
		if (c == nil) == (err == nil) {
			t.Fatalf("%+v beside the error %v", c, err)
		}
		if err != nil {
			return
		}
		b := openBatch(bytes.Clone(header))
		for _, r := range c.Records {
			b = appendRecord(b, r)
		}
		again, err := parse(file, closeBatch(b, len(header), 0), me)
		if err != nil || !slices.EqualFunc(again.Records, c.Records, bytes.Equal) {
			t.Fatalf("written anew: %+v, %v, want %q", again, err, c.Records)
		}
	})
}
