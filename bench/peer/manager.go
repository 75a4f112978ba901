package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"
)

type decision struct{ key, node string }

// answers counts what became of nodes or applications.
type answers struct{ accepted, refused atomic.Int64 }

// manager is the resource manager: it counts, and keeps what is decided.
type manager struct {
	constraints  *constraints
	nodes        answers
	applications answers
	refusedAsks  atomic.Int64
	predicates   atomic.Int64
	allocations  atomic.Int64
	lastNs       atomic.Int64 // when the last allocation came, from start on

	start     time.Time
	mu        sync.Mutex
	decisions []decision
}

func newManager(w *workload) *manager {
	return &manager{
		constraints: w.constraints,
		start:       time.Now(),
		decisions:   make([]decision, 0, len(w.asks)),
	}
}

// begin starts the clock.
func (m *manager) begin() { m.start = time.Now() }

// answered waits until so many nodes or applications are taken in; none may be refused.
func (m *manager) answered(what string, a *answers, expected int) error {
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); time.Sleep(500 * time.Microsecond) {
		if refused := a.refused.Load(); refused > 0 {
			return fmt.Errorf("%d %s refused", refused, what)
		}
		if a.accepted.Load() >= int64(expected) {
			return nil
		}
	}
	return fmt.Errorf("only %d of %d %s were taken in within two minutes", a.accepted.Load(), expected, what)
}

// wait returns when the run is over, and whether it was cut off.
func (m *manager) wait(expect int, o options) bool {
	for ; ; time.Sleep(2 * time.Millisecond) {
		if expect > 0 && m.allocations.Load() >= int64(expect) {
			return false
		}
		elapsed := time.Since(m.start)
		if elapsed > o.capped {
			return true
		}
		if elapsed-time.Duration(m.lastNs.Load()) > o.quiet {
			return false
		}
	}
}

func (m *manager) UpdateAllocation(r *si.AllocationResponse) error {
	m.refusedAsks.Add(int64(len(r.RejectedAllocations)))
	if len(r.New) == 0 {
		return nil
	}
	now := time.Since(m.start)
	m.mu.Lock()
	for _, a := range r.New {
		m.decisions = append(m.decisions, decision{a.AllocationKey, a.NodeID})
	}
	m.mu.Unlock()
	m.lastNs.Store(int64(now))
	m.allocations.Add(int64(len(r.New)))
	return nil
}

func (m *manager) UpdateApplication(r *si.ApplicationResponse) error {
	for _, refusal := range r.Rejected {
		fmt.Fprintln(os.Stderr, "application refused:", refusal.ApplicationID, refusal.Reason)
	}
	m.applications.refused.Add(int64(len(r.Rejected)))
	m.applications.accepted.Add(int64(len(r.Accepted)))
	return nil
}

func (m *manager) UpdateNode(r *si.NodeResponse) error {
	m.nodes.refused.Add(int64(len(r.Rejected)))
	m.nodes.accepted.Add(int64(len(r.Accepted)))
	return nil
}

func (m *manager) Predicates(a *si.PredicatesArgs) error {
	m.predicates.Add(1)
	return m.constraints.check(a.AllocationKey, a.NodeID)
}

func (m *manager) PreemptionPredicates(a *si.PreemptionPredicatesArgs) *si.PreemptionPredicatesResponse {
	return &si.PreemptionPredicatesResponse{Success: true, Index: a.StartIndex}
}

func (m *manager) SendEvent([]*si.EventRecord) {}

func (m *manager) UpdateContainerSchedulingState(*si.UpdateContainerSchedulingStateRequest) {}
