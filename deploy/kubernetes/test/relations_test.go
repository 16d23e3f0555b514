package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// leave is how long a daemon may take after its drain: it sends its last
// counts, waits up to 20 s until another one has its vote in the control log,
// and leaves the membership.
const leave = 25 * time.Second

// problems collects the faults of an overlay.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// The objects of each overlay belong together.
func TestRelations(t *testing.T) {
	for _, region := range regions(t) {
		for _, p := range load(t, region, "").check() {
			t.Errorf("%s: %s", region, p)
		}
	}
}

// check returns the faults between the objects of an overlay. drain is not
// among it, since only the settings have it.
func (o *overlay) check() (found problems) {
	for _, p := range o.daemons() {
		found.security(p)
		found.volumes(o, p)
		found.daemon(o, p)
	}
	found.durable(o)
	found.diskless(o)
	found.services(o)
	found.budgets(o)
	found.policies(o)
	return found
}

// selects reports whether a selector selects a pod template. An empty one
// selects nothing here: it would select everything.
func selects(s *metav1.LabelSelector, p pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(p.template.Labels))
}

// security: the pods may run in a namespace of the level restricted, and write
// only to volumes.
func (f *problems) security(p pod) {
	spec := &p.template.Spec
	s := spec.SecurityContext
	switch {
	case s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 || s.RunAsGroup == nil:
		f.add("%s may run as root", p.owner)
	case s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault:
		f.add("%s has no seccomp profile", p.owner)
	case s.FSGroup == nil || *s.FSGroup != *s.RunAsGroup:
		f.add("%s cannot read its secrets: fsGroup is not its group", p.owner)
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		f.add("%s has a token of the API server", p.owner)
	}
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		f.add("%s has variables for each service, and may take them for settings", p.owner)
	}
	for _, c := range spec.Containers {
		s := c.SecurityContext
		switch {
		case s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem:
			f.add("%s may write to its root file system", p.owner)
		case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation:
			f.add("%s may gain privileges", p.owner)
		case s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0:
			f.add("%s has capabilities", p.owner)
		}
	}
}

// volumes: each mount has a volume, each volume a mount, and ConfigMaps exist.
func (f *problems) volumes(o *overlay, p pod) {
	unused := make(map[string]bool)
	for _, v := range p.template.Spec.Volumes {
		unused[v.Name] = true
		if v.ConfigMap == nil {
			continue
		}
		if !slices.ContainsFunc(o.configs, func(m *corev1.ConfigMap) bool { return m.Name == v.ConfigMap.Name }) {
			f.add("%s: volume %s: there is no ConfigMap %s", p.owner, v.Name, v.ConfigMap.Name)
		}
	}
	for _, c := range p.claims {
		unused[c.Name] = true
	}
	for _, c := range p.template.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if _, ok := unused[m.Name]; !ok {
				f.add("%s: mount %s has no volume %s", p.owner, m.MountPath, m.Name)
			}
			unused[m.Name] = false
		}
	}
	for name, is := range unused {
		if is {
			f.add("%s: nothing mounts volume %s", p.owner, name)
		}
	}
}

// daemon: probes name ports and find problems at a bounded time, a stop fits
// into the grace period, and the admin listener stays where the settings of the
// region have it, on loopback.
func (f *problems) daemon(o *overlay, p pod) {
	if got := p.template.Labels["rld/region"]; got != o.region {
		f.add("%s is of region %q", p.owner, got)
	}
	for _, c := range p.template.Spec.Containers {
		for _, e := range c.Env {
			if e.Name == "RLD_ADMIN_ADDR" {
				f.add("%s moves its admin listener to %s", p.owner, e.Value)
			}
		}
		for _, probe := range []struct {
			name string
			*corev1.Probe
			path string
		}{
			{"startupProbe", c.StartupProbe, "/healthz"},
			{"livenessProbe", c.LivenessProbe, "/healthz"},
			{"readinessProbe", c.ReadinessProbe, "/readyz"},
		} {
			switch {
			case probe.Probe == nil || probe.HTTPGet == nil:
				f.add("%s has no %s by HTTP", p.owner, probe.name)
			case !hasPort(c, probe.HTTPGet.Port, corev1.ProtocolTCP):
				f.add("%s: %s: there is no port %s", p.owner, probe.name, probe.HTTPGet.Port.String())
			case probe.HTTPGet.Path != probe.path:
				f.add("%s: %s asks for %s, want %s", p.owner, probe.name, probe.HTTPGet.Path, probe.path)
			}
		}
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil {
			f.add("%s has no preStop that needs no shell", p.owner)
		}
	}
}

// stop returns how long the kubelet waits before SIGTERM, and how long in all.
func stop(p pod) (before, grace time.Duration) {
	sleep := p.template.Spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds
	return time.Duration(sleep) * time.Second, time.Duration(*p.template.Spec.TerminationGracePeriodSeconds) * time.Second
}

// hasPort reports whether a container listens at a port. A number needs no
// declaration with the same protocol, as 7946 is for both.
func hasPort(c corev1.Container, port intstr.IntOrString, protocol corev1.Protocol) bool {
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
		if port.Type == intstr.Int {
			return p.ContainerPort == port.IntVal
		}
		return p.Name == port.StrVal && protocolOf(p.Protocol) == protocol
	})
}

func protocolOf(p corev1.Protocol) corev1.Protocol {
	if p == "" {
		return corev1.ProtocolTCP
	}
	return p
}

// durable: all daemons start at once and find each other before they are
// ready.
func (f *problems) durable(o *overlay) {
	if len(o.durable) != 1 {
		f.add("%d StatefulSets, want one", len(o.durable))
		return
	}
	s := o.durable[0]
	if s.Name != o.region {
		f.add("the StatefulSet is %s: its daemons would not have the names of the settings", s.Name)
	}
	if !selects(s.Spec.Selector, o.daemons()[0]) {
		f.add("StatefulSet %s does not select its own pods", s.Name)
	}
	if s.Spec.PodManagementPolicy != "Parallel" {
		f.add("StatefulSet %s starts a pod only when the former one is ready", s.Name)
	}
	if n := *s.Spec.Replicas; n != 1 && n < 3 {
		f.add("StatefulSet %s has %d daemons: one or three, not two", s.Name, n)
	}
	i := slices.IndexFunc(o.services, func(v *corev1.Service) bool { return v.Name == s.Spec.ServiceName })
	switch {
	case i < 0:
		f.add("StatefulSet %s: there is no service %s", s.Name, s.Spec.ServiceName)
	case o.services[i].Spec.ClusterIP != corev1.ClusterIPNone:
		f.add("service %s is not headless", s.Spec.ServiceName)
	case !o.services[i].Spec.PublishNotReadyAddresses:
		f.add("service %s hides daemons that are not ready, so that none becomes ready", s.Spec.ServiceName)
	}
	for _, t := range s.Spec.Template.Spec.TopologySpreadConstraints {
		if !selects(t.LabelSelector, o.daemons()[0]) {
			f.add("StatefulSet %s: the spread by %s does not select its pods", s.Name, t.TopologyKey)
		}
	}
	if s.Spec.MinReadySeconds < 10 {
		f.add("StatefulSet %s is rolled in less than 10 s a pod", s.Name)
	}
}

// diskless: a node is never without a daemon in a roll.
func (f *problems) diskless(o *overlay) {
	for _, d := range o.diskless {
		i := slices.IndexFunc(o.daemons(), func(p pod) bool { return p.owner == "DaemonSet "+d.Name })
		if !selects(d.Spec.Selector, o.daemons()[i]) {
			f.add("DaemonSet %s does not select its own pods", d.Name)
		}
		r := d.Spec.UpdateStrategy.RollingUpdate
		if r == nil || r.MaxSurge == nil || r.MaxSurge.IntValue() != 1 || r.MaxUnavailable == nil || r.MaxUnavailable.IntValue() != 0 {
			f.add("DaemonSet %s stops the daemon of a node before the next one is ready", d.Name)
		}
		if d.Spec.MinReadySeconds < 10 {
			f.add("DaemonSet %s is rolled in less than 10 s a pod", d.Name)
		}
	}
}

// services: each selects pods of one kind, and its ports are theirs.
func (f *problems) services(o *overlay) {
	for _, s := range o.services {
		chosen := o.chosen(&metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		if len(chosen) != 1 {
			f.add("service %s selects pods of %d kinds, want one", s.Name, len(chosen))
			continue
		}
		for _, port := range s.Spec.Ports {
			if !hasPort(chosen[0].template.Spec.Containers[0], port.TargetPort, protocolOf(port.Protocol)) {
				f.add("service %s: %s has no port %s", s.Name, chosen[0].owner, port.TargetPort.String())
			}
		}
	}
}

// chosen returns the pods that a selector selects.
func (o *overlay) chosen(s *metav1.LabelSelector) []pod {
	return slices.DeleteFunc(o.daemons(), func(p pod) bool { return !selects(s, p) })
}

// budgets: an eviction stops one durable daemon at a time, and can always stop
// one.
func (f *problems) budgets(o *overlay) {
	if len(o.budgets) != 1 {
		f.add("%d PodDisruptionBudgets, want one", len(o.budgets))
		return
	}
	b := o.budgets[0]
	chosen := o.chosen(b.Spec.Selector)
	if len(chosen) != 1 || len(chosen[0].claims) == 0 {
		f.add("PodDisruptionBudget %s does not select the durable daemons alone", b.Name)
	}
	if most := b.Spec.MaxUnavailable; most == nil || *most != intstr.FromInt32(1) {
		f.add("PodDisruptionBudget %s does not allow one at a time", b.Name)
	}
}

// policies: each port is open to somebody, and each rule is about a port.
func (f *problems) policies(o *overlay) {
	if len(o.policies) != 1 {
		f.add("%d NetworkPolicies, want one", len(o.policies))
		return
	}
	n := o.policies[0]
	for _, p := range o.daemons() {
		if !selects(&n.Spec.PodSelector, p) {
			f.add("NetworkPolicy %s does not select %s", n.Name, p.owner)
		}
		c := p.template.Spec.Containers[0]
		for _, port := range c.Ports {
			if !slices.ContainsFunc(n.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool { return opens(r, port) }) {
				f.add("NetworkPolicy %s: nobody reaches port %s of %s", n.Name, port.Name, p.owner)
			}
		}
	}
	for _, r := range n.Spec.Ingress {
		for _, port := range r.Ports {
			if !slices.ContainsFunc(o.daemons(), func(p pod) bool {
				return hasPort(p.template.Spec.Containers[0], *port.Port, protocolIn(port))
			}) {
				f.add("NetworkPolicy %s: no daemon has port %s", n.Name, port.Port.String())
			}
		}
		if len(r.Ports) == 0 {
			f.add("NetworkPolicy %s opens all ports to %v", n.Name, r.From)
		}
	}
}

func protocolIn(p networkingv1.NetworkPolicyPort) corev1.Protocol {
	if p.Protocol == nil {
		return corev1.ProtocolTCP
	}
	return *p.Protocol
}

// opens reports whether a rule opens a port of a container.
func opens(r networkingv1.NetworkPolicyIngressRule, port corev1.ContainerPort) bool {
	return slices.ContainsFunc(r.Ports, func(p networkingv1.NetworkPolicyPort) bool {
		return hasPort(corev1.Container{Ports: []corev1.ContainerPort{port}}, *p.Port, protocolIn(p))
	})
}

// The decoder and the checks find faults. Each case changes one text of the
// objects of a region.
func TestRelationsMutated(t *testing.T) {
	objects, err := render("us-east-1", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ old, by, want string }{
		{"podManagementPolicy:", "podManagmentPolicy:", `unknown field "spec.podManagmentPolicy"`},
		{"podManagementPolicy:", "PodManagementPolicy:", `unknown field "spec.PodManagementPolicy"`},
		{"podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady", "only when the former one is ready"},
		{"kind: PodDisruptionBudget", "kind: PodDisruptionBudgets", "no type for it here"},
		{"name: us-east-1\n", "name: rld\n", "would not have the names of the settings"},
		{"rld/region: us-east-1\n    spec", "rld/region: eu-west-1\n    spec", `is of region "eu-west-1"`},
		{"replicas: 3", "replicas: 2", "one or three, not two"},
		{"serviceName: rld-peers", "serviceName: rld-pears", "there is no service rld-pears"},
		{"clusterIP: None", "type: ClusterIP", "service rld-peers is not headless"},
		{"  publishNotReadyAddresses: true\n", "", "hides daemons that are not ready"},
		{"minReadySeconds: 10", "minReadySeconds: 1", "is rolled in less than 10 s"},
		{"maxUnavailable: 1", "maxUnavailable: 2", "does not allow one at a time"},
		{"maxUnavailable: 1", "minAvailable: 3", "does not allow one at a time"},
		{"maxSurge: 1", "maxSurge: 0", "before the next one is ready"},
		{"port: probe\n          periodSeconds: 2", "port: prob\n          periodSeconds: 2", "readinessProbe: there is no port prob"},
		{"name: RLD_PROBE_ADDR", "name: RLD_ADMIN_ADDR", "moves its admin listener to 0.0.0.0:6071"},
		{"path: /readyz", "path: /healthz", "readinessProbe asks for /healthz"},
		{"startupProbe:", "livenessProbe:", "livenessProbe"},
		{"sleep:\n              seconds: 5", "exec:\n              command: [sleep, \"5\"]", "no preStop that needs no shell"},
		{"- mountPath: /var/lib/rld\n          name: state", "- mountPath: /var/lib/rld\n          name: stat", "has no volume stat"},
		{"        - mountPath: /etc/rld/tls\n          name: peer-tls\n          readOnly: true\n", "", "nothing mounts volume peer-tls"},
		{"name: rld-limits\n        name: limits", "name: rld-limit\n        name: limits", "there is no ConfigMap rld-limit"},
		{"targetPort: grpc", "targetPort: grpcs", "has no port grpcs"},
		{
			"maxUnavailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/component: durable\n",
			"maxUnavailable: 1\n  selector:\n    matchLabels:\n", "does not select the durable daemons alone",
		},
		{"    app.kubernetes.io/component: diskless\n    app", "    app", "service rld selects pods of 2 kinds"},
		{"- port: peer\n", "- port: pear\n", "no daemon has port pear"},
		{"- ports:\n    - port: peer", "- ports:\n    - port: swim", "nobody reaches port peer"},
		{"runAsNonRoot: true", "runAsNonRoot: false", "may run as root"},
		{"runAsUser: 65532", "runAsUser: 0", "may run as root"},
		{"fsGroup: 65532", "fsGroup: 1", "cannot read its secrets"},
		{"seccompProfile:\n          type: RuntimeDefault", "seccompProfile:\n          type: Unconfined", "has no seccomp profile"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "may write to its root file system"},
		{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "may gain privileges"},
		{"- ALL", "- NET_RAW", "has capabilities"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: true", "has a token"},
		{"enableServiceLinks: false", "enableServiceLinks: true", "has variables for each service"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			mutated, changed := make([][]byte, len(objects)), false
			for i, text := range objects {
				mutated[i] = []byte(strings.ReplaceAll(string(text), tc.old, tc.by))
				changed = changed || string(mutated[i]) != string(text)
			}
			if !changed {
				t.Fatalf("no object has %q", tc.old)
			}
			o, err := decode("us-east-1", mutated)
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				return
			}
			found := o.check()
			if !slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, tc.want) }) {
				t.Errorf("found %q, want %q", found, tc.want)
			}
		})
	}
}
