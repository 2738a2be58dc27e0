// Package config holds the configuration of both binaries: one YAML file each, every key also in the environment.
//
// It owns the types, their defaults, strict loading (unknown keys are errors that name the line and the nearest key),
// the environment overlay, the origin of each value, redaction of secrets, and the reference that is generated from the
// types and their comments. It does not open files that configuration names, and it builds nothing: that is package app.
//
// Precedence, lowest first: defaults, file, environment. The variable of a key is the prefix (CINNABAR_HUB_ or
// CINNABAR_AUTHZ_) and its path in upper case with underscores: tls.cert_file is CINNABAR_HUB_TLS_CERT_FILE. Lists and maps
// are written as YAML in their variable. An empty variable empties a text, and counts as absent for anything else. Relative file names in a file are relative to that file's folder, in the
// environment to the working directory.
//
// Values are plain data and not safe for concurrent modification; nothing in the program modifies one after loading.
package config
