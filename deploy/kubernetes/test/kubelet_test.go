//go:build linux

package kubernetes_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// node acts as a kubelet does for containers: it makes volumes, resolves the
// environment and the arguments, and starts processes. Instead of mounts and
// network namespaces it replaces texts: paths below a mount by those of the
// volume, 0.0.0.0 and 127.0.0.1 by the address of the pod, and names by
// addresses.
type node struct {
	t       testing.TB
	dir     string                       // of volumes and logs
	secrets map[string]map[string][]byte // content by name of the Secret
	names   map[string]string            // replaces DNS names
	claims  map[string]string            // folders by name of the claim, which outlive pods
}

// newNode returns a node with the Secrets of README.md.
func newNode(t testing.TB) *node {
	t.Helper()
	folder, err := os.MkdirTemp(dir, "node-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return &node{
		t: t, dir: folder, secrets: makeSecrets(t), names: make(map[string]string), claims: make(map[string]string),
	}
}

var (
	scriptBlock  = regexp.MustCompile("(?s)```sh\n(umask.*?)```")
	createSecret = regexp.MustCompile(`kubectl create secret generic (\S+) -n rld ((?:\s*\\?\s*--from-file=\S+)+)`)
	fromFile     = regexp.MustCompile(`--from-file=(\S+)`)
)

// makeSecrets runs the commands of README.md that make keys and certificates,
// and returns the Secrets that it makes of them.
func makeSecrets(t testing.TB) map[string]map[string][]byte {
	t.Helper()
	needOpenSSL(t)
	script := scriptBlock.FindStringSubmatch(readFile(t, "../README.md"))
	if script == nil {
		t.Fatal("README.md has no commands that make keys")
	}
	folder := t.TempDir()
	cmd := exec.Command("sh", "-euc", script[1])
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	secrets := make(map[string]map[string][]byte)
	for _, s := range createSecret.FindAllStringSubmatch(readFile(t, "../README.md"), -1) {
		files := make(map[string][]byte)
		for _, f := range fromFile.FindAllStringSubmatch(s[2], -1) {
			data, err := os.ReadFile(filepath.Join(folder, f[1]))
			if err != nil {
				t.Fatalf("README.md: Secret %s: %v", s[1], err)
			}
			files[f[1]] = data
		}
		secrets[s[1]] = files
	}
	return secrets
}

// needOpenSSL installs openssl on a Debian machine, as root, if it is missing.
func needOpenSSL(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err == nil {
		return
	}
	_ = exec.Command("apt-get", "update").Run() // the next command has the error
	out, err := exec.Command("apt-get", "install", "-y", "--no-install-recommends", "openssl").CombinedOutput()
	if err != nil {
		t.Fatalf("install openssl, which makes the keys of the manifests: apt-get: %v\n%s", err, out)
	}
}

// container is a container that can be started.
type container struct {
	pod, ip string
	spec    corev1.Container
	args    []string
	env     []string
	uid     uint32
	gid     uint32
	limits  string // folder of the ConfigMap of limits
}

// container makes the volumes of a pod of one container and resolves that.
// template is of the overlay o.
func (n *node) container(o *overlay, p pod, name, ip string) *container {
	n.t.Helper()
	spec := p.template.Spec.DeepCopy()
	if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 {
		n.t.Fatalf("%s: want one container", p.owner)
	}
	c := &container{pod: name, ip: ip, spec: spec.Containers[0]}
	if s := spec.SecurityContext; s != nil && s.RunAsUser != nil && s.RunAsGroup != nil {
		c.uid, c.gid = uint32(*s.RunAsUser), uint32(*s.RunAsGroup)
	}
	for _, claim := range p.claims {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + name},
		}})
	}
	replace := n.replacements(c, spec.Volumes)
	r := strings.NewReplacer(replace...)
	for _, v := range spec.Volumes {
		n.fill(o, c, v, r)
	}
	env := n.environment(p, c)
	for _, kv := range env {
		c.env = append(c.env, r.Replace(kv))
	}
	for _, a := range slices.Concat(c.command(), c.arguments()) {
		c.args = append(c.args, r.Replace(expand(a, env)))
	}
	return c
}

// command and arguments follow the rules of Kubernetes about an image's own.
func (c *container) command() []string {
	if len(c.spec.Command) > 0 {
		return c.spec.Command
	}
	return image.entrypoint
}

func (c *container) arguments() []string {
	if len(c.spec.Args) > 0 || len(c.spec.Command) > 0 {
		return c.spec.Args
	}
	return image.command
}

// replacements returns what stands for mounts and addresses, as pairs of old
// and new text. Longer texts come first, as NewReplacer tries them in order.
func (n *node) replacements(c *container, volumes []corev1.Volume) []string {
	pairs := maps.Clone(n.names)
	for _, m := range c.spec.VolumeMounts {
		i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			n.t.Fatalf("%s: no volume %s", c.pod, m.Name)
		}
		pairs[m.MountPath] = n.folder(c, volumes[i])
		if m.MountPath == "/etc/rld/limits" {
			c.limits = pairs[m.MountPath]
		}
	}
	pairs[image.copied] = binary
	pairs["0.0.0.0:"] = c.ip + ":"
	pairs["127.0.0.1:"] = c.ip + ":"
	var out []string
	olds := slices.SortedFunc(maps.Keys(pairs), func(a, b string) int { return len(b) - len(a) })
	for _, old := range olds {
		out = append(out, old, pairs[old])
	}
	return out
}

// folder returns the path of a volume.
func (n *node) folder(c *container, v corev1.Volume) string {
	if claim := v.PersistentVolumeClaim; claim != nil {
		return filepath.Join(n.dir, "claims", claim.ClaimName)
	}
	return filepath.Join(n.dir, c.pod, v.Name)
}

// fill makes a volume.
func (n *node) fill(o *overlay, c *container, v corev1.Volume, r *strings.Replacer) {
	n.t.Helper()
	folder := n.folder(c, v)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		n.t.Fatal(err)
	}
	switch {
	case v.ConfigMap != nil:
		i := slices.IndexFunc(o.configs, func(m *corev1.ConfigMap) bool { return m.Name == v.ConfigMap.Name })
		if i < 0 {
			n.t.Fatalf("%s: no ConfigMap %s", c.pod, v.ConfigMap.Name)
		}
		files := make(map[string][]byte)
		for key, text := range o.configs[i].Data {
			files[key] = []byte(r.Replace(text))
		}
		n.publish(folder, files, 0o644, 0)
	case v.Secret != nil:
		files, ok := n.secrets[v.Secret.SecretName]
		if !ok {
			n.t.Fatalf("%s: README.md makes no Secret %s", c.pod, v.Secret.SecretName)
		}
		mode := os.FileMode(0o644)
		if v.Secret.DefaultMode != nil {
			mode = os.FileMode(*v.Secret.DefaultMode)
		}
		n.publish(folder, files, mode, int(c.gid))
	case v.PersistentVolumeClaim != nil:
		n.own(folder, 0o2770, int(c.gid))
	default:
		n.t.Fatalf("%s: volume %s: a kind that is not known here", c.pod, v.Name)
	}
}

// publish writes files as the kubelet does: it replaces a link to their
// folder, so that all of them change at once.
func (n *node) publish(folder string, files map[string][]byte, mode os.FileMode, group int) {
	n.t.Helper()
	version, err := os.MkdirTemp(folder, "..2026_")
	if err != nil {
		n.t.Fatal(err)
	}
	n.own(version, 0o755, group)
	for name, data := range files {
		path := filepath.Join(version, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			n.t.Fatal(err)
		}
		n.own(path, mode, group)
		link := filepath.Join(folder, name)
		if err := os.Symlink(filepath.Join("..data", name), link); err != nil && !os.IsExist(err) {
			n.t.Fatal(err)
		}
	}
	next := filepath.Join(folder, "..data_tmp")
	if err := os.Symlink(filepath.Base(version), next); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(folder, "..data")); err != nil {
		n.t.Fatal(err)
	}
}

// own gives a file to root and a group, as fsGroup does. Only root can do
// that: others keep it, and daemons run as the user of the tests.
func (n *node) own(path string, mode os.FileMode, group int) {
	n.t.Helper()
	if os.Getuid() == 0 {
		if err := os.Chown(path, 0, group); err != nil {
			n.t.Fatal(err)
		}
	}
	if err := syscall.Chmod(path, uint32(mode)); err != nil {
		n.t.Fatal(err)
	}
}

var (
	labelField = regexp.MustCompile(`^metadata\.labels\['([^']+)'\]$`)
	reference  = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)
)

// environment resolves the variables of a container, in their order: a
// reference sees only earlier ones.
func (n *node) environment(p pod, c *container) (env []string) {
	n.t.Helper()
	if len(c.spec.EnvFrom) > 0 {
		n.t.Fatalf("%s: envFrom is not known here", c.pod)
	}
	for _, v := range c.spec.Env {
		value := expand(v.Value, env)
		if v.ValueFrom != nil {
			if v.ValueFrom.FieldRef == nil {
				n.t.Fatalf("%s: %s: a source that is not known here", c.pod, v.Name)
			}
			var err error
			if value, err = field(p, c, v.ValueFrom.FieldRef.FieldPath); err != nil {
				n.t.Fatalf("%s: %s: %v", c.pod, v.Name, err)
			}
		}
		env = append(env, v.Name+"="+value)
	}
	return env
}

// field returns a field of the pod for its environment.
func field(p pod, c *container, path string) (string, error) {
	switch path {
	case "metadata.name":
		return c.pod, nil
	case "status.podIP":
		return c.ip, nil
	}
	label := labelField.FindStringSubmatch(path)
	if label == nil {
		return "", fmt.Errorf("field %s is not known here", path)
	}
	return p.template.Labels[label[1]], nil // "" for a label that is missing
}

// expand replaces each $(NAME) by the variable. One that is not there stays.
func expand(text string, env []string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		name := reference.FindStringSubmatch(found)[1]
		for _, kv := range env {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return found
	})
}

// run returns a command with the environment and the user of the container.
func (c *container) run(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = c.env
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.uid, Gid: c.gid}
	}
	return cmd
}

// rld returns a command of rld in the container, as kubectl exec runs it. It
// looks for the daemon at the address of the pod, as that replaces 127.0.0.1.
func (c *container) rld(args ...string) *exec.Cmd {
	cmd := c.run(append([]string{binary}, args...)...)
	cmd.Env = append(slices.Clone(cmd.Env), "RLD_ADMIN_ADDR="+c.ip+":6070")
	return cmd
}
