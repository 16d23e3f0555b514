package daemon

import (
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/disk"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
)

// controlWorld is a world whose daemons run the control log.
type controlWorld struct {
	*world
	founders []string
	diskless []string
	witness  string                         // a region of witnesses, "" for none
	options  func(*resident) limits.Options // nil for those of a cluster
	holders  bool                           // control.Config.Holders
	formats  map[string]int                 // that daemons read, if not control.Format
	compact  int64                          // bytes; see replica.Storage
	folders  map[string]*weakFolder
	loops    map[string]*controlLoop // nil while the daemon is down
}

// newControlWorld returns a world of daemons that are not started.
func newControlWorld(t *testing.T, daemons int, founders []string, regions ...string) *controlWorld {
	t.Helper()
	w := &controlWorld{
		world: emptyWorld(t, 1_000, daemons, regions...), founders: founders,
		folders: map[string]*weakFolder{}, loops: map[string]*controlLoop{},
	}
	for _, r := range w.residents {
		w.folders[r.name] = &weakFolder{Dir: osdir.Dir(t.TempDir())}
	}
	w.mend = func(r *resident, cc *clusterConfig) {
		w.t.Helper()
		cc.control, cc.witness = w.loop(r, cc.log), w.witness == r.region
		if err := cc.control.open(); err != nil {
			w.t.Fatal(err)
		}
		w.loops[r.name] = cc.control
	}
	t.Cleanup(func() {
		for _, r := range w.residents {
			w.kill(r)
		}
	})
	return w
}

// loop returns the control log of a daemon before it is open.
func (w *controlWorld) loop(r *resident, log *slog.Logger) *controlLoop {
	o := limits.Options{Replicated: true}
	if w.options != nil {
		o = w.options(r)
	}
	return newControlLoop(control.Config{
		Name: r.name, Region: r.region, Founders: w.founders, Witness: w.witness == r.region, Durable: !slices.Contains(w.diskless, r.name),
		Language:      replica.Language(r.region, o),
		DaemonHorizon: agent.DefaultDaemonHorizon, Holders: w.holders, Format: w.formats[r.name], FormatAfter: time.Minute,
	}, replica.Storage{
		Folder: w.folders[r.name], Owner: journal.Owner{Cluster: 1, Name: r.region + "/" + r.name}, CompactBytes: w.compact,
	}, log)
}

// kill ends a daemon like kill -9. Its folder stays.
func (w *controlWorld) kill(r *resident) {
	r.kill()
	if c := w.loops[r.name]; c != nil {
		c.close()
		w.loops[r.name] = nil
	}
}

func (w *controlWorld) find(name string) *resident {
	return w.residents[slices.IndexFunc(w.residents, func(r *resident) bool { return r.name == name })]
}

func (w *controlWorld) state(name string) report.ControlState { return w.loops[name].State() }

// init asks a daemon for the founding.
func (w *controlWorld) init(name string, regions ...string) {
	w.t.Helper()
	all := make([]control.FirstRegion, len(regions))
	for i, r := range regions {
		all[i] = control.FirstRegion{Name: r, Weight: uint32(control.Whole / len(regions))}
	}
	all[0].Weight += uint32(control.Whole % len(regions))
	var err error
	w.loops[name].Do(func(n *control.Node) { err = n.Init(all, true) })
	if err != nil {
		w.t.Fatal(err)
	}
}

// met reports whether a daemon has had messages of n others.
func (w *controlWorld) met(name string, n int) bool {
	all := w.state(name).Status.Peers
	return len(all) == n && !slices.ContainsFunc(all, func(p control.PeerStatus) bool { return p.Age < 0 })
}

// note submits a command at a daemon.
func (w *controlWorld) note(name, text string) {
	w.t.Helper()
	var err error
	w.loops[name].Do(func(n *control.Node) {
		_, err = n.Submit(control.Request{Author: "test", Change: control.Change{Note: &control.Note{Text: text}}})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// equal reports whether all daemons that run have one record, with n commands,
// and know that it is current.
func (w *controlWorld) equal(n int) bool {
	hash := ""
	for _, r := range w.alive() {
		s := w.state(r.name)
		if s.Record == nil || s.Status.Starting || len(s.Record.History) != n || hash != "" && s.Status.Hash != hash {
			return false
		}
		hash = s.Status.Hash
	}
	return true
}

// votes reports whether a daemon votes, as another one knows it.
func (w *controlWorld) votes(name, at string) bool {
	v := w.state(at).Record.VoterOf(w.state(name).Status.ID)
	return v != nil && !v.Learner
}

// weakFolder is a folder on a disk that fails or is slow. It is safe for
// concurrent use.
type weakFolder struct {
	osdir.Dir
	full atomic.Bool
	slow atomic.Int64 // time.Duration of a sync
}

var errNoSpace = errors.New("no space left on device")

func (f *weakFolder) Create(name string) (disk.File, error) {
	if f.full.Load() {
		return nil, errNoSpace
	}
	file, err := f.Dir.Create(name)
	return &weakFile{file, f}, err
}

type weakFile struct {
	disk.File
	folder *weakFolder
}

func (f *weakFile) Write(data []byte) (int, error) {
	if f.folder.full.Load() {
		return 0, errNoSpace
	}
	return f.File.Write(data)
}

func (f *weakFile) WriteAt(data []byte, at int64) (int, error) {
	if f.folder.full.Load() {
		return 0, errNoSpace
	}
	return f.File.WriteAt(data, at)
}

func (f *weakFile) Sync() error {
	time.Sleep(time.Duration(f.folder.slow.Load()))
	return f.File.Sync()
}

// discard is a log that nobody reads.
func (w *world) discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
