// Package datadir knows the folder in which 'hub dev' keeps everything: what is in it, who may look into it, and how other
// commands find a running server through it (--data DIR).
//
// The folder is 0700 and its files 0600; looser modes are an error, since the folder holds signing keys and tokens. It carries a
// .gitignore that ignores all of it. The package opens no database and no history: it gives names and small files. A Dir is
// immutable and safe for concurrent use; files are replaced by atomic renames.
package datadir
