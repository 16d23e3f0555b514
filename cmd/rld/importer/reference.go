package importer

import (
	"regexp"
	"strings"
)

// syntax is how a value refers to other variables.
type syntax uint8

const (
	compose    syntax = iota // $NAME, ${NAME} and ${NAME:-DEFAULT}; $$ is a $
	kubernetes               // $(NAME); $$ before a ( is a $
	literal                  // not at all
)

var (
	whole   = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}$]*))?\}$`)
	inText  = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)?|\$([A-Za-z_][A-Za-z0-9_]*)`)
	inParen = regexp.MustCompile(`\$\$|\$\(([^)]*)\)`)
)

// refer replaces a value that refers to other variables. Of ${NAME:-DEFAULT}
// alone the default is used; any other value with a reference is not in the
// file.
func (v *given) refer() {
	if v.elsewhere != "" || v.of == literal {
		return
	}
	// Templates of Kubernetes have this form, too.
	if found := whole.FindStringSubmatch(v.value); found != nil {
		if v.value = found[2]; v.value == "" {
			v.elsewhere = "the variable " + found[1]
		}
		return
	}
	pattern := inText
	if v.of == kubernetes {
		pattern = inParen
	}
	for _, found := range pattern.FindAllStringSubmatch(v.value, -1) {
		if found[0] == "$$" {
			continue
		}
		if v.elsewhere = "another variable"; strings.Join(found[1:], "") != "" {
			v.elsewhere = "the variable " + strings.Join(found[1:], "")
		}
		v.value = ""
		return
	}
	if v.of == kubernetes {
		v.value = strings.ReplaceAll(v.value, "$$(", "$(")
		return
	}
	v.value = strings.ReplaceAll(v.value, "$$", "$")
}
