// Package disk is what rld needs of a file system: one folder with the files
// of one daemon. Package osdir is that of the operating system, package simdisk
// one in memory that fails as disks do.
package disk

import (
	"errors"
	"io"
)

// ErrInUse is the error of Folder.Lock for a file that another process has
// locked.
var ErrInUse = errors.New("another process uses it")

// Folder holds the files of one daemon, and outlives its processes. A name is
// that of a file in it, without a path. Its methods may be called concurrently
// for different files. Errors for a file that does not exist are
// fs.ErrNotExist.
//
// A change is durable, so that it survives the end of the machine, once the
// content was synced by its File and the name by the Folder. Before that any
// part of it may survive. The end of the process loses no change.
type Folder interface {
	// Path returns the path of a file, for messages.
	Path(name string) string
	// Lock creates the folder and the file if necessary, and locks the file
	// without waiting, until the Closer is closed or the process ends. It keeps
	// other processes out of the files that the caller guards with it. The
	// error is ErrInUse while one has it.
	Lock(name string) (io.Closer, error)
	// Size returns the size of a file in bytes.
	Size(name string) (int64, error)
	// ReadFile returns the content of a file. The caller owns it.
	ReadFile(name string) ([]byte, error)
	// Create returns a file without content, and drops the one that was there.
	Create(name string) (File, error)
	// Link gives a file a second name, which no file has.
	Link(name, second string) error
	// Rename gives a file another name, in place of the file that has it.
	Rename(from, to string) error
	// Remove removes a name.
	Remove(name string) error
	// Sync waits until the names are durable.
	Sync() error
}

// File is an open file. It keeps its content when its name is given to another
// one. One goroutine owns it.
type File interface {
	io.Writer
	io.WriterAt
	// Sync waits until the content and the size are durable. After an error
	// both are unknown, also after a later Sync without one.
	Sync() error
	Close() error
}
