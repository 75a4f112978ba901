package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/yunikorn-scheduler-interface/lib/go/api"
	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"
)

// confirmAfter is how long the manager takes to end what the scheduler wants to have ended.
const confirmAfter = 10 * time.Millisecond

// manager stands in for a resource manager: it sends the lines of a workload at their times, lets pods run as long as
// the workload says, and confirms what the scheduler ends. Predicates allow everything.
type manager struct {
	proxy    api.SchedulerAPI
	workload *workload
	speed    float64

	mu        sync.Mutex
	durations map[string]float64 // by key of the ask, until it runs
}

func newManager(proxy api.SchedulerAPI, w *workload, speed float64) *manager {
	return &manager{proxy: proxy, workload: w, speed: speed, durations: map[string]float64{}}
}

// scaled is how long so many seconds of the workload take here.
func (m *manager) scaled(seconds float64) time.Duration {
	return time.Duration(seconds / m.speed * float64(time.Second))
}

// play sends all lines at their times, and returns when the last one is sent.
func (m *manager) play() error {
	start := time.Now()
	for _, l := range m.workload.lines {
		time.Sleep(time.Until(start.Add(m.scaled(l.At))))
		if err := requests[l.T](m, l); err != nil {
			return fmt.Errorf("a line %q at %v s: %w", l.T, l.At, err)
		}
	}
	return nil
}

// -- lines ----------------------------------------------------------------------------------------------------------

func (m *manager) reload(l line) error {
	return m.proxy.UpdateConfiguration(&si.UpdateConfigurationRequest{
		RmID: rmID, PolicyGroup: "queues", Config: l.Yaml, ExtraConfig: m.workload.extra,
	})
}

func (m *manager) addNode(l line) error {
	if l.Drain {
		return m.node(l, si.NodeInfo_CREATE_DRAIN)
	}
	return m.node(l, si.NodeInfo_CREATE)
}

func nodeAction(action si.NodeInfo_ActionFromRM) func(*manager, line) error {
	return func(m *manager, l line) error { return m.node(l, action) }
}

func (m *manager) node(l line, action si.NodeInfo_ActionFromRM) error {
	attributes := l.Attrs
	if attributes == nil {
		attributes = map[string]string{}
	}
	node := &si.NodeInfo{NodeID: l.ID, Attributes: attributes, SchedulableResource: resource(l.Res), Action: action}
	return m.proxy.UpdateNode(&si.NodeRequest{RmID: rmID, Nodes: []*si.NodeInfo{node}})
}

func (m *manager) addApplication(l line) error {
	return m.proxy.UpdateApplication(&si.ApplicationRequest{RmID: rmID, New: []*si.AddApplicationRequest{{
		ApplicationID: l.ID, QueueName: l.Queue, PartitionName: "default", Tags: l.Tags,
		Ugi:                          &si.UserGroupInformation{User: l.User, Groups: l.Groups},
		ExecutionTimeoutMilliSeconds: l.PHTimeout, PlaceholderAsk: resource(l.PHAsk), GangSchedulingStyle: l.Style,
	}}})
}

func (m *manager) removeApplication(l line) error {
	return m.proxy.UpdateApplication(&si.ApplicationRequest{RmID: rmID, Remove: []*si.RemoveApplicationRequest{{
		ApplicationID: l.App, PartitionName: "default",
	}}})
}

func (m *manager) ask(l line) error {
	if l.Duration != nil {
		m.mu.Lock()
		m.durations[l.Key] = *l.Duration
		m.mu.Unlock()
	}
	ask := &si.Allocation{
		AllocationKey: l.Key, ApplicationID: l.App, PartitionName: "default", ResourcePerAlloc: resource(l.Res),
		Priority: l.Prio, AllocationTags: l.Tags, TaskGroupName: l.Group, Placeholder: l.PH, NodeID: l.Node,
		PreemptionPolicy: &si.PreemptionPolicy{AllowPreemptSelf: l.PreSelf, AllowPreemptOther: l.PreOther},
	}
	return m.proxy.UpdateAllocation(&si.AllocationRequest{RmID: rmID, Allocations: []*si.Allocation{ask}})
}

func (m *manager) foreign(l line) error {
	taken := &si.Allocation{
		AllocationKey: l.Key, PartitionName: "default", ResourcePerAlloc: resource(l.Res), NodeID: l.Node,
		AllocationTags: map[string]string{"foreign": "default"},
	}
	return m.proxy.UpdateAllocation(&si.AllocationRequest{RmID: rmID, Allocations: []*si.Allocation{taken}})
}

func (m *manager) release(application, key string, why si.TerminationType) error {
	return m.proxy.UpdateAllocation(&si.AllocationRequest{RmID: rmID, Releases: &si.AllocationReleasesRequest{
		AllocationsToRelease: []*si.AllocationRelease{{
			PartitionName: "default", ApplicationID: application, AllocationKey: key, TerminationType: why,
		}},
	}})
}

// later ends something after a while; an error then is told, as nobody waits for it.
func (m *manager) later(after time.Duration, application, key string, why si.TerminationType) {
	time.AfterFunc(after, func() {
		if err := m.release(application, key, why); err != nil {
			fmt.Fprintln(os.Stderr, "yunikorn: release of", key, "failed:", err)
		}
	})
}

// -- what the scheduler says ----------------------------------------------------------------------------------------

func (m *manager) UpdateAllocation(r *si.AllocationResponse) error {
	for _, a := range r.New {
		m.mu.Lock()
		seconds, ends := m.durations[a.AllocationKey]
		delete(m.durations, a.AllocationKey)
		m.mu.Unlock()
		if ends {
			m.later(m.scaled(seconds), a.ApplicationID, a.AllocationKey, si.TerminationType_STOPPED_BY_RM)
		}
	}
	for _, released := range r.Released {
		if released.TerminationType != si.TerminationType_STOPPED_BY_RM {
			m.later(confirmAfter, released.ApplicationID, released.AllocationKey, released.TerminationType)
		}
	}
	for _, refused := range r.RejectedAllocations {
		fmt.Fprintln(os.Stderr, "ask refused:", refused.AllocationKey, refused.Reason)
	}
	return nil
}

func (m *manager) UpdateApplication(r *si.ApplicationResponse) error {
	for _, refused := range r.Rejected {
		fmt.Fprintln(os.Stderr, "application refused:", refused.ApplicationID, refused.Reason)
	}
	return nil
}

func (m *manager) UpdateNode(r *si.NodeResponse) error {
	for _, refused := range r.Rejected {
		fmt.Fprintln(os.Stderr, "node refused:", refused.NodeID, refused.Reason)
	}
	return nil
}

func (m *manager) Predicates(*si.PredicatesArgs) error { return nil }

func (m *manager) PreemptionPredicates(a *si.PreemptionPredicatesArgs) *si.PreemptionPredicatesResponse {
	return &si.PreemptionPredicatesResponse{Success: true, Index: a.StartIndex}
}

func (m *manager) SendEvent([]*si.EventRecord) {}

func (m *manager) UpdateContainerSchedulingState(*si.UpdateContainerSchedulingStateRequest) {}
