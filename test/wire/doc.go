// Package wire holds tests only: they put the real hub behind what networks put before hubs, and send it what is odd and allowed.
package wire
