// yunikorn runs yunikorn-core 1.9 in this process with its own REST server on a loopback address, and a stand-in for a
// resource manager that plays a timed workload to it in real time: a running YuniKorn for tests.
//
//	yunikorn -workload FILE [-listen 127.0.0.1:9080] [-speed 10]
//
// It prints `listening URL` when REST answers, and `played` when the last line of the workload has been sent. It goes on
// answering until its standard input ends, so that it never outlives the program that has started it.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/apache/yunikorn-core/pkg/entrypoint"
	"github.com/apache/yunikorn-core/pkg/log"
	"github.com/apache/yunikorn-core/pkg/metrics/history"
	"github.com/apache/yunikorn-core/pkg/webservice"
	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"
	"github.com/julienschmidt/httprouter"
)

const (
	rmID = "played"
	// The original's own level, INFO, would write several lines for each allocation.
	logLevel = "WARN"
	// How many records of history its REST server keeps: one a minute for a day.
	historyRecords = 1440
)

// The REST server of the core listens on port 9080 of all addresses, which nothing can change. Its handler is the same
// wherever it listens, so it is taken from the core and served at an address of one's own.
//
//go:linkname newRouter github.com/apache/yunikorn-core/pkg/webservice.newRouter
func newRouter() *httprouter.Router

//go:linkname compressResponse github.com/apache/yunikorn-core/pkg/webservice.compressResponse
func compressResponse(inner http.Handler) http.Handler

func main() {
	file := flag.String("workload", "", "workload file (JSON lines), see docs/spec/workload-format.md")
	address := flag.String("listen", "127.0.0.1:0", "where REST answers; port 0: a free one")
	speed := flag.Float64("speed", 1, "how many seconds of the workload pass in a second")
	flag.Parse()
	if err := run(*file, *address, *speed); err != nil {
		fmt.Fprintln(os.Stderr, "yunikorn:", err)
		os.Exit(1)
	}
}

func run(file, address string, speed float64) error {
	if speed <= 0 {
		return fmt.Errorf("-speed %v: must be above 0", speed)
	}
	w, err := load(file)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.UpdateLoggingConfig(map[string]string{"log.level": logLevel})
	// Its own loop decides; its own web server is not started, see above.
	const manual, web = false, false
	services := entrypoint.StartAllServicesWithParams(manual, web)
	webservice.NewWebApp(services.Scheduler.GetClusterContext(), history.NewInternalMetricsHistory(historyRecords))
	m := newManager(services.RMProxy, w, speed)
	w.extra["log.level"] = logLevel
	_, err = services.RMProxy.RegisterResourceManager(&si.RegisterResourceManagerRequest{
		RmID: rmID, PolicyGroup: "queues", Version: "1.9", Config: w.yaml, ExtraConfig: w.extra,
		BuildInfo: map[string]string{"buildVersion": "played"},
	}, m)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	server := &http.Server{Handler: compressResponse(newRouter()), ReadHeaderTimeout: 10 * time.Second}
	go func() { failed <- server.Serve(listener) }()
	fmt.Printf("listening http://%s\n", listener.Addr())
	go func() {
		if err := m.play(); err != nil {
			failed <- err
			return
		}
		fmt.Println("played")
	}()
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		failed <- err
	}()
	return <-failed
}
