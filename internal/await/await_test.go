package await

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a test that records its failure.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure returns what a test fails with.
func failure(test func(t testing.TB)) string {
	r, done := &recorder{}, make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.text
}

func TestHangs(t *testing.T) {
	for name, hang := range map[string]func(t testing.TB, release chan struct{}){
		"True":  func(t testing.TB, _ chan struct{}) { True(t, "it hangs", func() bool { return false }) },
		"Value": func(t testing.TB, release chan struct{}) { Value(t, "it hangs", release) },
		"Done":  func(t testing.TB, release chan struct{}) { Done(t, "it hangs", func() { <-release }) },
	} {
		synctest.Test(t, func(t *testing.T) {
			release, began := make(chan struct{}), time.Now()
			text := failure(func(t testing.TB) { hang(t, release) })
			if !strings.HasPrefix(text, "not within 45s: it hangs\n") || !strings.Contains(text, "goroutine ") {
				t.Errorf("%s failed with %q", name, text)
			}
			if took := time.Since(began); took < limit || took > limit+look {
				t.Errorf("%s failed after %v", name, took)
			}
			close(release)
		})
	}
}

func TestReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		True(t, "a second passed", func() bool { return time.Since(began) >= time.Second })
		ch := make(chan int, 1)
		go func() {
			time.Sleep(limit - time.Second)
			ch <- 7
		}()
		if v := Value(t, "a number", ch); v != 7 {
			t.Errorf("got %d", v)
		}
		close(ch)
		if v := Value(t, "the end", ch); v != 0 {
			t.Errorf("got %d of a closed channel", v)
		}
		ended := false
		Done(t, "the end of a function", func() { ended = true })
		if !ended {
			t.Error("Done returned before its function")
		}
	})
}
