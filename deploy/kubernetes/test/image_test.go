package kubernetes_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// root is the folder of the repository, as tests see it.
const root = "../../.."

// dockerfile is the part of a Dockerfile that the tests need.
type dockerfile struct {
	build      string // the command that builds the binary
	builder    string // the image in which it runs
	base       string // the image that the binary is added to
	copied     string // path of the binary there
	link       string // path of the link there
	linked     string // the target of the link
	user       string // UID:GID
	entrypoint []string
	command    []string
}

// parseDockerfile reads the lines of a Dockerfile with a builder and an image.
// It does not know lines that continue.
func parseDockerfile(text string) (d dockerfile, err error) {
	builder := ""
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		fields := strings.Fields(rest)
		last := func() string { return fields[max(0, len(fields)-1)] }
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
		case len(fields) == 0:
			return d, fmt.Errorf("%q has no arguments", line)
		case word == "FROM" && slices.Contains(fields, "AS"):
			builder = last()
			d.builder = fields[len(fields)-3]
		case word == "FROM":
			d.base = last()
		case word == "RUN" && strings.Contains(rest, "go build"):
			d.build = rest
		case word == "RUN" && strings.Contains(rest, " ln -s "):
			d.link, d.linked = last(), fields[len(fields)-2]
		case word == "COPY" && fields[0] == "--from="+builder && strings.HasSuffix(fields[1], "/") && last() == "/":
			path, ok := strings.CutPrefix(d.link, fields[1])
			if !ok {
				return d, fmt.Errorf("copies %s, in which there is no link", fields[1])
			}
			d.link = "/" + path
		case word == "COPY" && fields[0] == "--from="+builder:
			if !strings.Contains(d.build, " -o "+fields[1]+" ") {
				return d, fmt.Errorf("copies %s, which the build does not make: %s", fields[1], d.build)
			}
			d.copied = last()
		case word == "USER":
			d.user = last()
		case word == "ENTRYPOINT":
			err = yaml.Unmarshal([]byte(rest), &d.entrypoint)
		case word == "CMD":
			err = yaml.Unmarshal([]byte(rest), &d.command)
		case !slices.Contains([]string{"ARG", "WORKDIR", "COPY", "RUN"}, word):
			return d, fmt.Errorf("%s is not known here", word)
		}
		if err != nil {
			return d, fmt.Errorf("%s: %w", line, err)
		}
	}
	return d, nil
}

// buildBinary runs the build command of the Dockerfile, in the repository, and
// writes the binary to a path.
func (d dockerfile) buildBinary(path string) error {
	command := regexp.MustCompile(` -o \S+ `).ReplaceAllLiteralString(d.build, " -o "+path+" ")
	if !strings.Contains(command, path) {
		return fmt.Errorf("the build command has no -o: %q", d.build)
	}
	cmd := exec.Command("sh", "-euc", command)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "TARGETOS=", "TARGETARCH=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return nil
}

// binary is the rld of the image, made by the build command of the Dockerfile,
// and image the rest of the Dockerfile. dir is for files that other users may
// read.
var (
	dir, binary string
	image       dockerfile
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	err := func() (err error) {
		// Daemons run as another user, who needs to get here.
		if dir, err = os.MkdirTemp("", "rld-kubernetes-"); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
		if err != nil {
			return err
		}
		if image, err = parseDockerfile(string(text)); err != nil {
			return err
		}
		binary = filepath.Join(dir, "rld")
		return errors.Join(os.Chmod(dir, 0o755), image.buildBinary(binary))
	}()
	defer os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// The image holds the binary, which needs nothing beside it, and runs it as
// the user of the manifests.
func TestImage(t *testing.T) {
	if image.base != "scratch" {
		t.Errorf("the image is made from %s, want scratch", image.base)
	}
	if want := []string{image.copied}; !slices.Equal(image.entrypoint, want) {
		t.Errorf("the entrypoint is %q, want %q", image.entrypoint, want)
	}
	if !slices.Contains([]string{"/usr/local/bin", "/usr/bin", "/bin"}, filepath.Dir(image.copied)) {
		t.Errorf("the binary is %s: kubectl exec POD -- rld looks for it in /usr/local/bin", image.copied)
	}
	if image.link != "/bin/ratelimit" || image.linked != image.copied {
		t.Errorf("%s is a link to %s, want /bin/ratelimit and %s: Envoy Gateway starts that", image.link, image.linked, image.copied)
	}
	mod := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readFile(t, root+"/go.mod"))
	if want := "golang:" + mod[1]; image.builder != want {
		t.Errorf("the image is built in %s, want %s as in go.mod", image.builder, want)
	}
	for _, region := range regions(t) {
		for _, p := range load(t, region, "").daemons() {
			s := p.template.Spec.SecurityContext
			if want := fmt.Sprintf("%d:%d", *s.RunAsUser, *s.RunAsGroup); image.user != want {
				t.Errorf("the image runs as %s, and %s of %s as %s", image.user, p.owner, region, want)
			}
		}
	}
}

// The binary is static, stripped, and names no folder of the machine that
// built it.
func TestBinary(t *testing.T) {
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatalf("not a binary of Linux: %v", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary is linked dynamically: %v", p.Type)
		}
	}
	for _, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB || strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_") {
			t.Errorf("the binary is not stripped: section %s", s.Name)
		}
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte(here+"/")) {
		t.Errorf("the binary contains the path %s", here)
	}
	t.Logf("%s bytes", strconv.Itoa(len(data)))
}

// Each fault of a Dockerfile is found when it is read.
func TestDockerfileFaults(t *testing.T) {
	text := readFile(t, root+"/Dockerfile")
	for _, tc := range []struct{ old, by, want string }{
		{"COPY --from=build /out/rld", "COPY --from=build /out/rlx", "which the build does not make"},
		{"COPY --from=build /out/links/", "COPY --from=build /out/link/", "in which there is no link"},
		{`["serve"]`, `["serve"`, "CMD"},
		{"USER 65532:65532", "USER", "has no arguments"},
		{"USER", "USR", "USR is not known here"},
	} {
		if !strings.Contains(text, tc.old) {
			t.Fatalf("the Dockerfile has no %q", tc.old)
		}
		_, err := parseDockerfile(strings.Replace(text, tc.old, tc.by, 1))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.by, err, tc.want)
		}
	}
}
