// Package journal stores records on disk in the order in which they were
// appended. No record is lost once Append has returned for it.
//
// A journal is one file: a header with its owner, and batches, one for each
// Append. Header and batches have checksums, and batches are numbered. This
// distinguishes the two faults that a file can have when it is opened. The last
// batch may be torn: the process or the machine ended during its write, Append
// did not return for it, and it is cut off. Everything else is damage, which is
// reported with its position and never cut off.
//
// A batch is torn when it is cut short, or when all of it in some sector of 512
// bytes is zero, as file systems show a sector that was never written, and when
// no batch follows it: the next one is written only after it is on disk. A
// batch begins and ends with a byte that is not zero, so that no complete one
// looks torn.
//
// In bytes, little-endian, the header is
//
//	8  magic, "rldjrnl" and a line feed
//	4  version, now 1
//	4  CRC-32C of the rest of the header
//	8  initial size of the file: no byte before it is torn
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
