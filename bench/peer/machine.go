package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// use is processor time in seconds: this process's, and the whole machine's.
type use struct{ own, machine float64 }

func (u use) since(before use) use { return use{u.own - before.own, u.machine - before.machine} }

// otherCores is how many processors other processes kept busy during so many seconds: near 0 for a clean run.
func (u use) otherCores(wall float64) float64 { return max(0, u.machine-u.own) / wall }

// cpu reads what was used so far; what the system does not tell is 0.
func cpu() use {
	var u use
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		u.own = float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u
	}
	columns := strings.Fields(strings.SplitN(string(text), "\n", 2)[0])
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // user nice system irq softirq steal, in hundredths of a second
		if i < len(columns) {
			ticks, _ := strconv.ParseFloat(columns[i], 64)
			u.machine += ticks / 100
		}
	}
	return u
}

// memory reads a field of this process's status, such as VmRSS or VmHWM, in MiB.
func memory(field string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, l := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(l, field+":"); found {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib / 1024
		}
	}
	return 0
}
