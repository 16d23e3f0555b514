package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLicences checks that every module in the binary has a licence that is
// allowed, and that its text is kept.
func TestLicences(t *testing.T) {
	t.Chdir("../../..")
	file := filepath.Join(t.TempDir(), "LICENCES.txt")
	if err := licences(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"google.golang.org/grpc ", "std ", "Apache License", "Mozilla Public License"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the list of licences lacks %q", want)
		}
	}
}

// TestLicencesNotAllowed checks that a module without a licence, and one with
// a licence that is not allowed, are refused.
func TestLicencesNotAllowed(t *testing.T) {
	if _, _, err := licence(t.TempDir()); err == nil {
		t.Error("a module without a licence was accepted")
	}
	dir := t.TempDir()
	gpl := "This program is free software: you can redistribute it and/or modify it under the terms of the GNU " +
		"General Public License as published by the Free Software Foundation, either version 3 of the License, " +
		"or (at your option) any later version.\n"
	if err := os.WriteFile(filepath.Join(dir, "COPYING"), []byte(gpl), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := licence(dir); err == nil {
		t.Error("the GNU General Public License was accepted")
	}
}

// TestEmptied checks that a folder with other files is not emptied.
func TestEmptied(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rld-linux-amd64", "keep"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := emptied(dir); err == nil || !strings.Contains(err.Error(), "keep") {
		t.Errorf("got %v, want a refusal that names the file", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "rld-linux-amd64")); err != nil {
		t.Error("a file of the refused folder was removed")
	}
}
