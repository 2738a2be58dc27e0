// Package private makes and checks folders and files that belong to one operating system user: mode 0700 and 0600. Of those shared with
// some users it checks that others lack the rights they must not have.
//
// It owns the rule that a looser mode is an error and the text that says how to mend it. It never changes the mode of what exists:
// a secret that was readable by others has to be looked at by a person. It does not own what is in the files.
//
// The check is of the permission bits. On Windows they do not exist; there access is a matter of the folder's access control list,
// and the checks pass.
package private
