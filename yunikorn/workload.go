package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"
)

// line is one line of a workload file; T names its kind and At its time in seconds.
type line struct {
	T         string            `json:"t"`
	At        float64           `json:"at"`
	Name      string            `json:"name"`
	Expect    int               `json:"expect"`
	Version   int               `json:"version"`
	Yaml      string            `json:"yaml"`
	Extra     map[string]string `json:"extra"`
	ID        string            `json:"id"`
	Res       map[string]int64  `json:"res"`
	Attrs     map[string]string `json:"attrs"`
	Drain     bool              `json:"drain"`
	Queue     string            `json:"queue"`
	User      string            `json:"user"`
	Groups    []string          `json:"groups"`
	Tags      map[string]string `json:"tags"`
	PHTimeout int64             `json:"ph_timeout_ms"`
	PHAsk     map[string]int64  `json:"ph_ask"`
	Style     string            `json:"style"`
	Key       string            `json:"key"`
	App       string            `json:"app"`
	Prio      int32             `json:"prio"`
	Group     string            `json:"group"`
	PH        bool              `json:"ph"`
	PreSelf   bool              `json:"pre_self"`
	PreOther  bool              `json:"pre_other"`
	Node      string            `json:"node"`
	Duration  *float64          `json:"duration_s"`
	// Of no effect on the scheduler here: what becomes of evicted pods is the simulator's affair.
	Grace    float64  `json:"grace_s"`
	Resubmit bool     `json:"resubmit"`
	Notes    []string `json:"notes"`
}

// workload is what the scheduler is told, in the order of the file.
type workload struct {
	yaml  string
	extra map[string]string
	lines []line
}

func load(path string) (*workload, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), 1<<26)
	w := &workload{extra: map[string]string{}}
	for number := 1; scanner.Scan(); number++ {
		var l line
		decoder := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		// A field that is passed over, such as a gang, would make another workload of it without a word.
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		switch l.T {
		case "meta":
		case "config":
			w.yaml = l.Yaml
			for name, value := range l.Extra {
				w.extra[name] = value
			}
		default:
			if _, known := requests[l.T]; !known {
				return nil, fmt.Errorf("%s:%d: a line %q cannot be played", path, number, l.T)
			}
			w.lines = append(w.lines, l)
		}
	}
	return w, scanner.Err()
}

// requests are what the manager does for each kind of line.
var requests = map[string]func(*manager, line) error{
	"reload":       (*manager).reload,
	"node":         (*manager).addNode,
	"node-update":  nodeAction(si.NodeInfo_UPDATE),
	"node-drain":   nodeAction(si.NodeInfo_DRAIN_NODE),
	"node-undrain": nodeAction(si.NodeInfo_DRAIN_TO_SCHEDULABLE),
	"node-remove":  nodeAction(si.NodeInfo_DECOMISSION),
	"app":          (*manager).addApplication,
	"release-app":  (*manager).removeApplication,
	"ask":          (*manager).ask,
	"foreign":      (*manager).foreign,
	"release":      func(m *manager, l line) error { return m.release(l.App, l.Key, si.TerminationType_STOPPED_BY_RM) },
}

func resource(amounts map[string]int64) *si.Resource {
	if amounts == nil {
		return nil
	}
	out := &si.Resource{Resources: make(map[string]*si.Quantity, len(amounts))}
	for name, value := range amounts {
		out.Resources[name] = &si.Quantity{Value: value}
	}
	return out
}
