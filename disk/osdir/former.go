package osdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Former is the folder, in that of a daemon, with its files of earlier times.
const Former = "state.former"

// keptFormer is how many folders with former files are kept.
const keptFormer = 4

// MoveAside moves those of the files that exist, in their order, into a new
// numbered folder in Former, of which the latest ones are kept. It returns the
// path of the folder, "" if no file was moved. After an error it may have moved
// some of them; the same call moves the rest.
func (d Dir) MoveAside(files ...string) (into string, err error) {
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		_, err := os.Lstat(d.Path(name))
		return errors.Is(err, fs.ErrNotExist)
	})
	if len(files) == 0 {
		return "", nil
	}
	folder := d.Path(Former)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	all, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	numbers := []int{0}
	for _, e := range all {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && e.Name() == numbered(n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	into = filepath.Join(folder, numbered(numbers[len(numbers)-1]+1))
	if err := os.Mkdir(into, 0o700); err != nil {
		return "", err
	}
	for i, name := range files {
		if err := os.Rename(d.Path(name), filepath.Join(into, name)); err != nil {
			if i == 0 {
				return "", errors.Join(err, os.Remove(into))
			}
			return into, err
		}
		if err := d.Sync(); err != nil {
			return into, err
		}
	}
	for numbers = numbers[1:]; len(numbers) >= keptFormer; numbers = numbers[1:] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, numbered(numbers[0]))))
	}
	return into, err
}

// numbered returns the name of a folder in Former.
func numbered(n int) string { return fmt.Sprintf("%06d", n) }
