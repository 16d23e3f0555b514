// Package enum names and lists the values of enumerations: small integers that
// count from 0.
package enum

// Name returns the name of a value, of which names has one for each value in
// ascending order; "unknown" for a value beyond them.
func Name[T ~uint8](v T, names ...string) string {
	if int(v) >= len(names) {
		return "unknown"
	}
	return names[v]
}

// All returns the n values from 0 on, in ascending order.
func All[T ~uint8](n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = T(i)
	}
	return all
}
