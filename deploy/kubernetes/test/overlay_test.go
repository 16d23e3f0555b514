// Package kubernetes_test builds the overlays of deploy/kubernetes, decodes
// their objects strictly, checks how they belong together, and starts real
// daemons as the kubelet would. It is a module of its own, so that the modules
// of Kubernetes do not become requirements of rld. From the root:
//
//	go -C deploy/kubernetes/test test -count=1 -v ./...
package kubernetes_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlay is the decoded objects of a region.
type overlay struct {
	region     string
	namespaces []*corev1.Namespace
	configs    []*corev1.ConfigMap
	services   []*corev1.Service
	durable    []*appsv1.StatefulSet
	diskless   []*appsv1.DaemonSet
	budgets    []*policyv1.PodDisruptionBudget
	policies   []*networkingv1.NetworkPolicy
}

// regions returns the names of the overlays: the folders that hold one.
func regions(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../*/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range found {
		if name := filepath.Base(filepath.Dir(path)); name != "base" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	if len(out) < 2 {
		t.Fatalf("overlays: %q, want one for each region", out)
	}
	return out
}

// render returns the YAML of the objects of a region as kubectl apply -k would
// send them. more is added to the kustomization.yaml of the overlay.
func render(region, more string) ([][]byte, error) {
	files, err := readDeploy()
	if err != nil {
		return nil, err
	}
	path := "/deploy/kubernetes/" + region
	text, err := files.ReadFile(path + "/kustomization.yaml")
	if err != nil {
		return nil, err
	}
	if err := files.WriteFile(path+"/kustomization.yaml", append(text, more...)); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, path)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// readDeploy returns the files of deploy/ that kustomize may read.
func readDeploy() (filesys.FileSystem, error) {
	files := filesys.MakeFsInMemory()
	return files, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" && d.Name() != "Kustomization" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel("../..", path)
		if err != nil {
			return err
		}
		return files.WriteFile("/deploy/"+filepath.ToSlash(name), data)
	})
}

// load builds and decodes the overlay of a region, with more in its
// kustomization.yaml.
func load(t *testing.T, region, more string) *overlay {
	t.Helper()
	objects, err := render(region, more)
	if err != nil {
		t.Fatalf("%s: %v", region, err)
	}
	o, err := decode(region, objects)
	if err != nil {
		t.Fatalf("%s: %v", region, err)
	}
	return o
}

// decode decodes objects strictly: a field that the type does not have, one
// that is given twice, and one in another case are errors.
func decode(region string, objects [][]byte) (*overlay, error) {
	o := &overlay{region: region}
	for _, text := range objects {
		if err := o.add(text); err != nil {
			first, _, _ := strings.Cut(strings.TrimPrefix(string(text), "apiVersion: "), "\nmetadata:")
			return nil, fmt.Errorf("%s: %w", first, err)
		}
	}
	return o, nil
}

func (o *overlay) add(text []byte) error {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &head); err != nil {
		return err
	}
	switch id := head.APIVersion + " " + head.Kind; id {
	case "v1 Namespace":
		return into(data, &o.namespaces)
	case "v1 ConfigMap":
		return into(data, &o.configs)
	case "v1 Service":
		return into(data, &o.services)
	case "apps/v1 StatefulSet":
		return into(data, &o.durable)
	case "apps/v1 DaemonSet":
		return into(data, &o.diskless)
	case "policy/v1 PodDisruptionBudget":
		return into(data, &o.budgets)
	case "networking.k8s.io/v1 NetworkPolicy":
		return into(data, &o.policies)
	default:
		return fmt.Errorf("%s: no type for it here: add it to overlay", id)
	}
}

// into decodes an object and appends it to a list.
func into[T any](data []byte, list *[]*T) error {
	one := new(T)
	strict, err := json.UnmarshalStrict(data, one)
	if err != nil {
		return err
	}
	if len(strict) > 0 {
		return strict[0]
	}
	*list = append(*list, one)
	return nil
}

// pod is a pod template and the name of what makes pods from it.
type pod struct {
	owner    string // such as "StatefulSet us-east-1"
	template *corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim // of each pod
}

// daemons returns all pod templates of the overlay, those of durable daemons
// first.
func (o *overlay) daemons() []pod {
	var out []pod
	for _, s := range o.durable {
		out = append(out, pod{"StatefulSet " + s.Name, &s.Spec.Template, s.Spec.VolumeClaimTemplates})
	}
	for _, d := range o.diskless {
		out = append(out, pod{"DaemonSet " + d.Name, &d.Spec.Template, nil})
	}
	return out
}

// readFile returns the text of a file of the repository.
func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
