package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"
)

// line is one line of a workload file of version 1; T names its kind.
type line struct {
	T        string            `json:"t"`
	Name     string            `json:"name"`
	Expect   int               `json:"expect"`
	Yaml     string            `json:"yaml"`
	Extra    map[string]string `json:"extra"`
	ID       string            `json:"id"`
	Res      map[string]int64  `json:"res"`
	Attrs    map[string]string `json:"attrs"`
	Queue    string            `json:"queue"`
	User     string            `json:"user"`
	Groups   []string          `json:"groups"`
	Tags     map[string]string `json:"tags"`
	Key      string            `json:"key"`
	App      string            `json:"app"`
	Prio     int32             `json:"prio"`
	Group    string            `json:"group"`
	PH       bool              `json:"ph"`
	PreSelf  bool              `json:"pre_self"`
	PreOther bool              `json:"pre_other"`
}

// workload is what the scheduler is told, in the order of the file; expect is 0 where the end is not known.
type workload struct {
	name         string
	expect       int
	yaml         string
	extra        map[string]string
	nodes        []*si.NodeInfo
	applications []*si.AddApplicationRequest
	asks         []*si.Allocation
	constraints  *constraints
}

func load(path string) (*workload, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), 1<<26)
	w := &workload{extra: map[string]string{}, constraints: newConstraints()}
	for number := 1; scanner.Scan(); number++ {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if err := w.take(l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	return w, scanner.Err()
}

func (w *workload) take(l line) error {
	switch l.T {
	case "meta":
		w.name, w.expect = l.Name, l.Expect
	case "config":
		w.yaml = l.Yaml
		for name, value := range l.Extra {
			w.extra[name] = value
		}
	case "node":
		if l.Attrs == nil {
			l.Attrs = map[string]string{}
		}
		w.constraints.addNode(l.ID, l.Attrs)
		w.nodes = append(w.nodes, &si.NodeInfo{
			NodeID: l.ID, Attributes: l.Attrs, SchedulableResource: resource(l.Res), Action: si.NodeInfo_CREATE,
		})
	case "app":
		w.applications = append(w.applications, &si.AddApplicationRequest{
			ApplicationID: l.ID, QueueName: l.Queue, Tags: l.Tags,
			Ugi: &si.UserGroupInformation{User: l.User, Groups: l.Groups},
		})
	case "ask":
		ask := &si.Allocation{
			AllocationKey: l.Key, ApplicationID: l.App, ResourcePerAlloc: resource(l.Res), Priority: l.Prio,
			AllocationTags: l.Tags, TaskGroupName: l.Group, Placeholder: l.PH,
		}
		if l.PreSelf || l.PreOther {
			ask.PreemptionPolicy = &si.PreemptionPolicy{AllowPreemptSelf: l.PreSelf, AllowPreemptOther: l.PreOther}
		}
		w.asks = append(w.asks, ask)
		return w.constraints.addAsk(l.Key, l.Tags)
	default:
		return fmt.Errorf("unknown kind of line %q", l.T)
	}
	return nil
}

func resource(amounts map[string]int64) *si.Resource {
	out := &si.Resource{Resources: make(map[string]*si.Quantity, len(amounts))}
	for name, value := range amounts {
		out.Resources[name] = &si.Quantity{Value: value}
	}
	return out
}
