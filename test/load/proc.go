package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what processes have used.
type usage struct {
	cpu      time.Duration // user and system, in steps of 10 ms
	resident int64         // bytes
}

// ticks is how many ticks of /proc a second has: the same on all Linux systems that Go runs on.
const ticks = 100

// measure gives what a process and its children use, by Linux's /proc.
func measure(pid int) (usage, error) {
	u, err := measureOne(pid)
	if err != nil {
		return u, err
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // not every kernel tells
	for f := range strings.FieldsSeq(string(children)) {
		child, err := strconv.Atoi(f)
		if err != nil {
			return u, err
		}
		if c, err := measureOne(child); err == nil { // it may have ended
			u.cpu += c.cpu
			u.resident += c.resident
		}
	}
	return u, nil
}

func measureOne(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("measure process %d: %w", pid, err)
	}
	return parseStat(string(stat), int64(os.Getpagesize()))
}

// parseStat reads a line of /proc/PID/stat.
func parseStat(stat string, page int64) (usage, error) {
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // the name before it may contain spaces
	if len(f) < 22 {
		return usage{}, errors.New("/proc/PID/stat has another form than expected")
	}
	var v [3]int64
	for i, field := range []int{11, 12, 21} {
		var err error
		if v[i], err = strconv.ParseInt(f[field], 10, 64); err != nil {
			return usage{}, fmt.Errorf("/proc/PID/stat: %w", err)
		}
	}
	return usage{cpu: time.Duration(v[0]+v[1]) * (time.Second / ticks), resident: v[2] * page}, nil
}
