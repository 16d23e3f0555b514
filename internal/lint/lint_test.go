package lint

import "testing"

// TestRepository holds this repository to its policy.
func TestRepository(t *testing.T) {
	findings, err := Check("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}
