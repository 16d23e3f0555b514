// Package journal keeps records on disk, in the order in which they were
// appended, so that none is lost that Append has returned for.
//
// A journal is one file: a header, which names whose it is, and batches, one
// for each Append. Header and batches have checksums, and batches are numbered.
// So the two things that may be wrong with a file when it is opened can be told
// apart. The last batch may be torn, which is when the process or the machine
// ended while it was being written: nobody has been told that it is stored, and
// it is cut off. All else is damage, of which a journal says where it is and
// lets go of nothing.
//
// A batch is torn when it is cut short, or when all that it has in some sector
// of 512 bytes is zero, which is what a file system shows of a sector that was
// never written, and when no batch follows it: the next one is written only
// after it is on disk. A batch begins and ends with a byte that is not zero, so
// that none looks like that by itself.
//
// In bytes, little-endian, the header is
//
//	8  magic, "rldjrnl" and a line feed
//	4  version, now 1
//	4  CRC-32C of the rest of the header
//	8  size of the file when it was begun: of what is before, nothing is torn
//	8  fingerprint of the cluster
//	4  length of the daemon's name
//	   the name
//
// and a batch
//
//	1  0xe1
//	4  length of the records
//	8  number of the batch in the file, from 0
//	4  CRC-32C of the records
//	4  CRC-32C of the 17 bytes before
//	   records, each a varint with its length and its bytes
//	1  0xe1
package journal
