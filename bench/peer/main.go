// Peer runs yunikorn-core in this process, through its scheduler API, on a workload file, and prints what it measured as
// one line of JSON (result.go).
//
// The clock runs from the first ask handed in to the last allocation handed out. Nodes and applications are in place
// before; the asks are handed in a thousand a call, while the scheduler decides in its own loop. The run ends when the
// workload's expected number of allocations is there, when none has come for a while, or when its time is up.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/apache/yunikorn-core/pkg/entrypoint"
	"github.com/apache/yunikorn-core/pkg/log"
	"github.com/apache/yunikorn-scheduler-interface/lib/go/api"
	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"
)

const (
	rmID  = "rm:bench"
	batch = 1000
	// The original's own level, INFO, would write several lines for each allocation.
	logLevel = "WARN"
)

type options struct {
	workload string
	capped   time.Duration
	quiet    time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.workload, "workload", "", "workload file (JSON lines, version 1)")
	seconds := flag.Float64("cap", 180, "stop so many seconds after the first ask")
	quiet := flag.Float64("idle", 5, "done when no allocation has come for so many seconds")
	flag.Parse()
	o.capped = time.Duration(*seconds * float64(time.Second))
	o.quiet = time.Duration(*quiet * float64(time.Second))
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	w, err := load(o.workload)
	if err != nil {
		return err
	}
	runtime.GC()
	loaded := memory("VmRSS")
	m, proxy, err := start(w)
	if err != nil {
		return err
	}
	runtime.GC()
	before := cpu()
	m.begin()
	for i := 0; i < len(w.asks); i += batch {
		request := &si.AllocationRequest{RmID: rmID, Allocations: w.asks[i:min(i+batch, len(w.asks))]}
		if err := proxy.UpdateAllocation(request); err != nil {
			return err
		}
	}
	submitted := time.Since(m.start)
	cutOff := m.wait(w.expect, o)
	wall := time.Since(m.start)
	used := cpu().since(before)
	if refused := m.refusedAsks.Load(); refused > 0 {
		return fmt.Errorf("%d asks refused", refused)
	}
	return m.result(w, o, cutOff, submitted, wall, used, loaded).print()
}

// start begins the scheduler's own services and tells it of nodes and applications, which it takes in before start
// returns. Reservations are off; so is preemption, by the configuration in the file.
func start(w *workload) (*manager, api.SchedulerAPI, error) {
	if err := os.Setenv("DISABLE_RESERVATION", "true"); err != nil {
		return nil, nil, err
	}
	log.UpdateLoggingConfig(map[string]string{"log.level": logLevel})
	// Its own loop decides, and there is no web server.
	const manual, web = false, false
	proxy := entrypoint.StartAllServicesWithParams(manual, web).RMProxy
	m := newManager(w)
	w.extra["log.level"] = logLevel
	_, err := proxy.RegisterResourceManager(&si.RegisterResourceManagerRequest{
		RmID: rmID, PolicyGroup: "queues", Version: "1.9", Config: w.yaml, ExtraConfig: w.extra,
	}, m)
	if err != nil {
		return nil, nil, err
	}
	if err := proxy.UpdateNode(&si.NodeRequest{RmID: rmID, Nodes: w.nodes}); err != nil {
		return nil, nil, err
	}
	if err := m.answered("nodes", &m.nodes, len(w.nodes)); err != nil {
		return nil, nil, err
	}
	if err := proxy.UpdateApplication(&si.ApplicationRequest{RmID: rmID, New: w.applications}); err != nil {
		return nil, nil, err
	}
	return m, proxy, m.answered("applications", &m.applications, len(w.applications))
}
