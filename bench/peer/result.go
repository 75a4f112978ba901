package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"time"
)

// result is what is printed. If the run was cut off, seconds is the time after which it was, and what is printed of
// allocations is what was made until then.
type result struct {
	Workload       string  `json:"workload"`
	Nodes          int     `json:"nodes"`
	Asks           int     `json:"asks"`
	Expect         int     `json:"expect"`
	Allocs         int     `json:"allocs"`
	Seconds        float64 `json:"seconds"`
	AllocsPerS     float64 `json:"allocs_per_s"`
	SubmitS        float64 `json:"submit_s"`
	Capped         bool    `json:"capped"`
	OwnCPUS        float64 `json:"own_cpu_s"`
	OtherCores     float64 `json:"other_cores"`
	RSSLoadedMB    int64   `json:"rss_loaded_mb"`
	RSSPeakMB      int64   `json:"rss_peak_mb"`
	PredicateCalls int64   `json:"predicate_calls"`
	GoMaxProcs     int     `json:"gomaxprocs"`
	Digest         string  `json:"digest"`
}

func (m *manager) result(w *workload, o options, cutOff bool, submitted, wall time.Duration, used use, loaded int64) *result {
	m.mu.Lock()
	defer m.mu.Unlock()
	digest := sha256.New()
	for _, d := range m.decisions {
		fmt.Fprintf(digest, "%s\t%s\n", d.key, d.node)
	}
	seconds := float64(m.lastNs.Load()) / 1e9
	if cutOff {
		seconds = o.capped.Seconds()
	}
	r := &result{
		Workload: w.name, Nodes: len(w.nodes), Asks: len(w.asks), Expect: w.expect,
		Allocs: len(m.decisions), Seconds: seconds, SubmitS: submitted.Seconds(), Capped: cutOff,
		OwnCPUS: used.own, OtherCores: used.otherCores(wall.Seconds()),
		RSSLoadedMB: loaded, RSSPeakMB: memory("VmHWM"), PredicateCalls: m.predicates.Load(),
		GoMaxProcs: runtime.GOMAXPROCS(0), Digest: hex.EncodeToString(digest.Sum(nil)),
	}
	if seconds > 0 {
		r.AllocsPerS = float64(r.Allocs) / seconds
	}
	return r
}

func (r *result) print() error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(text))
	return err
}
