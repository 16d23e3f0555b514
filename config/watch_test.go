package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a folder under watch in a synctest bubble. Files are real, time
// is not: a look costs no time, so each step below is exact.
type watched struct {
	t   *testing.T
	dir string
	w   *Watcher

	mu   sync.Mutex
	seen []string // contents, or the error, of each Reading handed on
}

// watch runs step inside a bubble with a watcher of a folder that holds
// a.yaml with the text "one".
func watch(t *testing.T, step func(w *watched)) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "one")
	synctest.Test(t, func(t *testing.T) {
		have, _, err := Files(dir, NamesYAML)
		if err != nil {
			t.Fatal(err)
		}
		w := &watched{t: t, dir: dir}
		w.w = NewWatcher(dir, NamesYAML, have, w.note)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.w.Run(ctx, time.Second)
		synctest.Wait()
		step(w)
		cancel()
		synctest.Wait()
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *watched) note(r Reading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Err != nil {
		w.seen = append(w.seen, "error: "+strings.ReplaceAll(r.Err.Error(), w.dir, "DIR"))
		return
	}
	var all []string
	for _, f := range r.Files {
		all = append(all, string(f.Data))
	}
	w.seen = append(w.seen, strings.Join(all, "+"))
}

func (w *watched) write(name, text string) { write(w.t, filepath.Join(w.dir, name), text) }

// after lets time pass and checks which readings were passed on meanwhile.
func (w *watched) after(d time.Duration, want ...string) {
	w.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.seen, ", "); got != strings.Join(want, ", ") {
		w.t.Errorf("handed on %q, want %q", got, strings.Join(want, ", "))
	}
	w.seen = nil
}

const look = time.Second + 2*settleTime // a poll and the settling after it

func TestWatcherSeesContent(t *testing.T) {
	watch(t, func(w *watched) {
		w.after(10 * time.Second)
		w.write("a.yaml", "two")
		w.after(look, "two")
		w.after(10 * time.Second)
		w.write("b.yaml", "more")
		w.after(look, "two+more")
		if err := os.Remove(filepath.Join(w.dir, "a.yaml")); err != nil {
			t.Fatal(err)
		}
		w.after(look, "more")
	})
}

func TestWatcherOverlooksATouch(t *testing.T) {
	watch(t, func(w *watched) {
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(filepath.Join(w.dir, "a.yaml"), later, later); err != nil {
			t.Fatal(err)
		}
		w.write("a.yaml", "one")
		w.write("notes.txt", "not a file of limits")
		w.after(5 * time.Second)
	})
}

func TestWatcherReportsAnErrorOnce(t *testing.T) {
	watch(t, func(w *watched) {
		path := filepath.Join(w.dir, "a.yaml")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		w.after(5*time.Second, "error: DIR: no limits in this folder: put a *.yaml or *.yml file there")
		// The same content as before the error is news: it is good again.
		w.write("a.yaml", "one")
		w.after(5*time.Second, "one")
	})
}

func TestWatcherWaitsUntilAWriterIsDone(t *testing.T) {
	watch(t, func(w *watched) {
		time.Sleep(time.Second - settleTime/2) // half-way to the first look
		for _, text := range []string{"", "tw", "two"} {
			w.write("a.yaml", text)
			w.after(settleTime)
		}
		w.after(settleTime, "two")
	})
}

func TestWatcherReportsAnEndlessWriter(t *testing.T) {
	watch(t, func(w *watched) {
		time.Sleep(time.Second - settleTime/2)
		text := ""
		for range settleTries {
			text += "x"
			w.write("a.yaml", text)
			w.after(settleTime)
		}
		text += "x"
		w.write("a.yaml", text)
		w.after(settleTime, "error: DIR: the files keep changing while they are read")
		w.after(look, text)
	})
}

func TestReloadLooksAtOnce(t *testing.T) {
	watch(t, func(w *watched) {
		w.w.Reload()
		w.after(0, "one") // unchanged, and asked for
		w.write("a.yaml", "two")
		w.w.Reload()
		w.after(settleTime, "two")
	})
}

func TestReloadWithoutRun(t *testing.T) {
	n := 0
	w := NewWatcher(t.TempDir(), NamesYAML, nil, func(Reading) { n++ })
	for range 3 {
		w.Reload()
	}
	if n != 3 {
		t.Errorf("%d readings of three reloads", n)
	}
}

// Kubernetes exchanges a whole version of a ConfigMap by renaming one link;
// the files that are read keep their names, sizes and often their times.
func TestWatcherSeesAConfigMapSwap(t *testing.T) {
	watch(t, func(w *watched) {
		link := func(target, name string) {
			if err := os.Symlink(target, filepath.Join(w.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, version := range []string{"..v1", "..v2"} {
			if err := os.Mkdir(filepath.Join(w.dir, version), 0o700); err != nil {
				t.Fatal(err)
			}
			w.write(version+"/m.yaml", version)
		}
		link("..v1", "..data")
		link("..data/m.yaml", "m.yaml")
		w.after(look, "one+..v1")
		link("..v2", "..data_tmp")
		if err := os.Rename(filepath.Join(w.dir, "..data_tmp"), filepath.Join(w.dir, "..data")); err != nil {
			t.Fatal(err)
		}
		w.after(look, "one+..v2")
	})
}

func TestWatcherStopsWhileItSettles(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := NewWatcher(dir, NamesYAML, nil, func(r Reading) { t.Errorf("got %v", r) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			w.Run(ctx, time.Second)
			close(done)
		}()
		time.Sleep(time.Second + settleTime/2)
		cancel()
		<-done
	})
}

func TestFingerprintDistinguishesReadings(t *testing.T) {
	dir := t.TempDir()
	seen := make(map[fingerprint]int)
	for i, files := range [][]string{ // names and contents in turn
		{"a", ""}, {"", "a"}, {"ab", "c"}, {"a", "bc"}, {"a", "b", "c", "d"}, {"a", "b"},
	} {
		var r Reading
		for j := 0; j < len(files); j += 2 {
			path := filepath.Join(dir, "x")
			write(t, path, files[j+1])
			one, _, err := Files(path, NamesYAML)
			if err != nil {
				t.Fatal(err)
			}
			one[0].Name = files[j]
			r.Files = append(r.Files, one...)
		}
		f := r.fingerprint()
		if j, ok := seen[f]; ok {
			t.Errorf("readings %d and %d have one fingerprint", j, i)
		}
		seen[f] = i
	}
}
